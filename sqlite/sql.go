package sqlite

import (
	"embed"
	"strings"
)

// The statements stand in the folder sql, so that each can be read,
// and run in the sqlite3 shell, alone. None is built in Go.
//
//go:embed sql/*.sql
var files embed.FS

// query names one statement. The zero value is none.
type query uint8

const (
	_ query = iota
	qBegin
	qCommit
	qRollback
	qWhole
	qWholeEnd
	qStepInsert
	qStepInsertDone
	qStepUpdate
	qStepByName
	qStepsOfRun
	qStepsFrom
	qStepsTerminal
	qStepsOpen
	qStepsChosen
	qRunLost
	qStepsMap
	qStepsMapDone
	qRunInsert
	qRunInsertChild
	qRunFinish
	qRunSetAside
	qRunHold
	qRunWake
	qRunByID
	qRunByName
	qRunState
	qRunLabel
	qSignalInsert
	qSignalByID
	qSignalByKey
	qSignalNext
	qSignalTake
	qUnreceived
	qSignalNextRun
	qEventInsert
	qEvents
	qEventFound
	qTagSet
	qTagDelete
	qTagsOfRun
	qWakeFirst
	qWakeNext
	qWakeLongest
	qPairNext
	qPairNextQueue
	qClaimDue
	qClaimSuspect
	qClaimTake
	qClaimPause
	qClaimHalt
	qHeldBy
	qOrderTree
	qOrderParent
	qOrderChange
	qOrderFreezeRun
	qOrderFreezeSteps
	qOrderFreezeStarts
	qNews
	qNewsClear
	qTerminated
	qTerminatedInsert
	qTerminatedForget
	qDeadline
	qList
	qListTag
	qListNameCount
	qListKeyCount
	qLeaseExtend
	qLeaseExpire
	qTokenKey
	qTokenKeyInsert
	qWorkerUpsert
	qWorkerDelete

	// From here on statements sort what they answer, or read all of a table.
	qListName
	qListKey
	qTree
	qCounts
	qCountsOpen
	qWorkers
	qWorkersLive
	qWorkerForget
	qTerminatedSweep
	qDataVersion
	qEncoding
	qJournalWAL
	qMigrationTable
	qMigrationExists
	qMigrationVersion
	qMigrationInsert
	queries
)

// fileOf is the file that holds each statement.
func fileOf(q query) string {
	return [queries]string{
		qBegin:             "begin.sql",
		qCommit:            "commit.sql",
		qRollback:          "rollback.sql",
		qWhole:             "whole.sql",
		qWholeEnd:          "whole_end.sql",
		qStepInsert:        "step_insert.sql",
		qStepInsertDone:    "step_insert_done.sql",
		qStepUpdate:        "step_update.sql",
		qStepByName:        "step_by_name.sql",
		qStepsOfRun:        "history.sql",
		qStepsTerminal:     "steps_terminal.sql",
		qStepsOpen:         "steps_open.sql",
		qStepsChosen:       "choices.sql",
		qRunLost:           "run_lost.sql",
		qStepsMap:          "maps.sql",
		qStepsMapDone:      "maps_done.sql",
		qRunInsert:         "run_insert.sql",
		qRunInsertChild:    "run_insert_child.sql",
		qRunFinish:         "run_finish.sql",
		qRunSetAside:       "run_set_aside.sql",
		qRunHold:           "run_hold.sql",
		qRunWake:           "run_wake.sql",
		qRunByID:           "run_by_id.sql",
		qRunByName:         "run_by_name.sql",
		qRunState:          "run_state.sql",
		qRunLabel:          "run_label.sql",
		qSignalInsert:      "signal_insert.sql",
		qSignalByID:        "signal_by_id.sql",
		qSignalByKey:       "signal_by_key.sql",
		qSignalNext:        "signal_next.sql",
		qSignalTake:        "signal_take.sql",
		qUnreceived:        "signals_unreceived.sql",
		qSignalNextRun:     "signal_next_run.sql",
		qEventInsert:       "event_insert.sql",
		qEvents:            "events.sql",
		qEventFound:        "event_found.sql",
		qTagSet:            "tag_set.sql",
		qTagDelete:         "tag_delete.sql",
		qTagsOfRun:         "tags.sql",
		qWakeFirst:         "wake_first.sql",
		qWakeNext:          "wake_next.sql",
		qClaimDue:          "claim_due.sql",
		qClaimSuspect:      "claim_crashed_twice.sql",
		qClaimTake:         "claim_take.sql",
		qStepsFrom:         "history_from.sql",
		qHeldBy:            "held_by.sql",
		qClaimPause:        "claim_pause.sql",
		qClaimHalt:         "claim_already_paused.sql",
		qOrderTree:         "control_tree.sql",
		qOrderParent:       "control_parent.sql",
		qOrderChange:       "control_apply.sql",
		qOrderFreezeRun:    "control_shift_run.sql",
		qOrderFreezeSteps:  "control_shift_steps.sql",
		qOrderFreezeStarts: "control_shift_starts.sql",
		qNews:              "notifications.sql",
		qNewsClear:         "notifications_clear.sql",
		qTerminated:        "terminated.sql",
		qTerminatedInsert:  "terminated_insert.sql",
		qTerminatedForget:  "terminated_forget.sql",
		qDeadline:          "deadline.sql",
		qList:              "list.sql",
		qListTag:           "list_tag.sql",
		qListNameCount:     "list_name_count.sql",
		qListKeyCount:      "list_key_count.sql",
		qLeaseExtend:       "lease_extend.sql",
		qLeaseExpire:       "lease_expire.sql",
		qTokenKey:          "token_key.sql",
		qTokenKeyInsert:    "token_key_insert.sql",
		qWorkerUpsert:      "worker_upsert.sql",
		qWorkerDelete:      "worker_delete.sql",
		qWorkerForget:      "worker_forget.sql",
		qTerminatedSweep:   "terminated_sweep.sql",
		qListName:          "list_name.sql",
		qListKey:           "list_key.sql",
		qTree:              "tree.sql",
		qCounts:            "counts.sql",
		qCountsOpen:        "counts_open.sql",
		qWorkers:           "workers.sql",
		qWorkersLive:       "workers_live.sql",
		qWakeLongest:       "wake_longest.sql",
		qPairNext:          "pair_next.sql",
		qPairNextQueue:     "pair_next_queue.sql",
		qDataVersion:       "data_version.sql",
		qEncoding:          "encoding.sql",
		qJournalWAL:        "journal_wal.sql",
		qMigrationTable:    "migration_table.sql",
		qMigrationExists:   "migration_exists.sql",
		qMigrationVersion:  "migration_version.sql",
		qMigrationInsert:   "migration_insert.sql",
	}[q]
}

// texts holds every statement's text.
type texts [queries]string

// loadTexts reads the embedded files. It cuts what follows the statement: the
// driver takes any text after it, be it a line feed, for a script, and parses a
// script anew at each use.
func loadTexts() *texts {
	var all texts
	for q := qBegin; q < queries; q++ {
		b, err := files.ReadFile("sql/" + fileOf(q))
		if err != nil {
			panic("sqlite: the embedded statement is missing: " + err.Error())
		}
		all[q] = strings.TrimRight(string(b), "; \t\r\n")
	}
	return &all
}
