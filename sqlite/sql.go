package sqlite

import (
	"embed"
	"strings"
)

// The statements are files in the folder sql, so that each can be read, and executed in the
// sqlite3 shell, by itself. No statement is built in Go.
//
//go:embed sql/*.sql
var sqlFiles embed.FS

// queryID identifies a statement. The zero value identifies none.
type queryID uint8

const (
	_ queryID = iota
	qBegin
	qCommit
	qRollback
	qTxSavepoint
	qTxRelease
	qStepInsert
	qStepInsertDone
	qStepUpdate
	qStepByName
	qHistory
	qHistoryFrom
	qStepsTerminal
	qStepsOpen
	qChoices
	qRunLastLeaseLoss
	qMaps
	qMapItemsDone
	qRunInsert
	qRunInsertChild
	qRunFinish
	qRunMarkPaused
	qRunHold
	qRunWake
	qRunByID
	qRunByName
	qRunState
	qRunNames
	qSignalInsert
	qSignalByID
	qSignalByKey
	qSignalNext
	qSignalTake
	qSignalsUnreceived
	qSignalNextRun
	qEventInsert
	qEvents
	qEventCursorValid
	qTagSet
	qTagDelete
	qTags
	qLaneNextWake
	qLaneLongestDue
	qLaneNext
	qClaimDue
	qClaimCrashedTwice
	qClaimTake
	qClaimPauseCrashed
	qClaimAlreadyPaused
	qClaimedLeases
	qControlTree
	qControlParent
	qControlApply
	qControlShiftRun
	qControlShiftSteps
	qControlShiftStarts
	qNotifications
	qWokenClear
	qTerminatedRuns
	qTerminatedInsert
	qTerminatedDelete
	qDeadline
	qList
	qListTag
	qListNameCount
	qListTagKeyCount
	qLeaseExtend
	qLeaseExpire
	qTokenKey
	qTokenKeyInsert
	qPermitLock
	qPermitReturn
	qPermitLimit
	qPermitsInUse
	qPermitWaiting
	qPermitByStep
	qPermitDelete
	qPermitWrite
	qPermitLineUpdate
	qWaitingLineNext
	qAdmitQueue
	qAdmitFound
	qAdmitNext
	qAdmitDeparted
	qAdmitDue
	qAdmitStray
	qAdmitLive
	qAdmitLine
	qAdmitBehind
	qAdmitUnclaimed
	qAdmitKey
	qAdmitLook
	qAdmitLookAll
	qAdmitRunWrite
	qAdmitPlaceWrite
	qAdmitKeyWrite
	qAdmitKeyDelete
	qAdmitQueueWrite
	qAdmitQueueDelete
	qAdmitKeysDelete
	qLimitSet
	qQueueSet
	qQueuePause
	qQueueResume
	qQueueDelete
	qQueueDepth
	qPlaceInsert
	qPlaceOf
	qPlaceDeleteFree
	qStartByNote
	qStartByKeep
	qLimitDelete
	qScheduleDue
	qScheduleWaiting
	qScheduleByName
	qSchedules
	qScheduleInsert
	qScheduleUpdate
	qScheduleDelete
	qFireUpsert
	qFireStarted
	qFireLatest
	qFireOldest
	qFireDelete
	qFireDeleteAll
	qFiredRead
	qFiredUpsert
	qFiredDeleteAll
	qFoldByKey
	qFoldUpsert
	qFoldDelete
	qFoldDue
	qFoldEnded
	qFoldRun
	qFoldRelease
	qWorkerUpsert
	qWorkerDelete

	// The statements from here on sort their results or scan a whole table.
	qListName
	qListTagKey
	qListGroup
	qTree
	qTreeCounts
	qTreeOpenCalls
	qWorkers
	qWorkersLive
	qWorkerDeleteOld
	qTerminatedDeleteOld
	qDataVersion
	qEncoding
	qJournalWAL
	qMigrationTable
	qMigrationExists
	qMigrationVersion
	qMigrationInsert
	qLimitDeclare
	qPermitsOf
	qLimits
	qLimitUse
	qQueueRows
	qQueueDeclare
	qQueues
	qQueueKeys
	queryCount
)

// sqlFile returns the name of the file that holds a statement.
func sqlFile(q queryID) string {
	return [queryCount]string{
		qBegin:               "begin.sql",
		qCommit:              "commit.sql",
		qRollback:            "rollback.sql",
		qTxSavepoint:         "tx_savepoint.sql",
		qTxRelease:           "tx_release.sql",
		qStepInsert:          "step_insert.sql",
		qStepInsertDone:      "step_insert_done.sql",
		qStepUpdate:          "step_update.sql",
		qStepByName:          "step_by_name.sql",
		qHistory:             "history.sql",
		qStepsTerminal:       "steps_terminal.sql",
		qStepsOpen:           "steps_open.sql",
		qChoices:             "choices.sql",
		qRunLastLeaseLoss:    "run_last_lease_loss.sql",
		qMaps:                "maps.sql",
		qMapItemsDone:        "map_items_done.sql",
		qRunInsert:           "run_insert.sql",
		qRunInsertChild:      "run_insert_child.sql",
		qRunFinish:           "run_finish.sql",
		qRunMarkPaused:       "run_mark_paused.sql",
		qRunHold:             "run_hold.sql",
		qRunWake:             "run_wake.sql",
		qRunByID:             "run_by_id.sql",
		qRunByName:           "run_by_name.sql",
		qRunState:            "run_state.sql",
		qRunNames:            "run_names.sql",
		qSignalInsert:        "signal_insert.sql",
		qSignalByID:          "signal_by_id.sql",
		qSignalByKey:         "signal_by_key.sql",
		qSignalNext:          "signal_next.sql",
		qSignalTake:          "signal_take.sql",
		qSignalsUnreceived:   "signals_unreceived.sql",
		qSignalNextRun:       "signal_next_run.sql",
		qEventInsert:         "event_insert.sql",
		qEvents:              "events.sql",
		qEventCursorValid:    "event_cursor_valid.sql",
		qTagSet:              "tag_set.sql",
		qTagDelete:           "tag_delete.sql",
		qTags:                "tags.sql",
		qLaneNextWake:        "lane_next_wake.sql",
		qClaimDue:            "claim_due.sql",
		qClaimCrashedTwice:   "claim_crashed_twice.sql",
		qClaimTake:           "claim_take.sql",
		qHistoryFrom:         "history_from.sql",
		qClaimedLeases:       "claimed_leases.sql",
		qClaimPauseCrashed:   "claim_pause_crashed.sql",
		qClaimAlreadyPaused:  "claim_already_paused.sql",
		qControlTree:         "control_tree.sql",
		qControlParent:       "control_parent.sql",
		qControlApply:        "control_apply.sql",
		qControlShiftRun:     "control_shift_run.sql",
		qControlShiftSteps:   "control_shift_steps.sql",
		qControlShiftStarts:  "control_shift_starts.sql",
		qNotifications:       "notifications.sql",
		qWokenClear:          "woken_clear.sql",
		qTerminatedRuns:      "terminated_runs.sql",
		qTerminatedInsert:    "terminated_insert.sql",
		qTerminatedDelete:    "terminated_delete.sql",
		qDeadline:            "deadline.sql",
		qList:                "list.sql",
		qListTag:             "list_tag.sql",
		qListNameCount:       "list_name_count.sql",
		qListTagKeyCount:     "list_tag_key_count.sql",
		qLeaseExtend:         "lease_extend.sql",
		qLeaseExpire:         "lease_expire.sql",
		qTokenKey:            "token_key.sql",
		qTokenKeyInsert:      "token_key_insert.sql",
		qPermitLock:          "permit_lock.sql",
		qPermitReturn:        "permit_return.sql",
		qPermitLimit:         "permit_limit.sql",
		qPermitsInUse:        "permits_in_use.sql",
		qPermitWaiting:       "permit_waiting.sql",
		qPermitByStep:        "permit_by_step.sql",
		qPermitDelete:        "permit_delete.sql",
		qPermitWrite:         "permit_write.sql",
		qPermitLineUpdate:    "permit_line_update.sql",
		qWaitingLineNext:     "waiting_line_next.sql",
		qAdmitQueue:          "admit_queue.sql",
		qAdmitFound:          "admit_found.sql",
		qAdmitNext:           "admit_next.sql",
		qAdmitDeparted:       "admit_departed.sql",
		qAdmitDue:            "admit_due.sql",
		qAdmitStray:          "admit_stray.sql",
		qAdmitLive:           "admit_live.sql",
		qAdmitLine:           "admit_line.sql",
		qAdmitBehind:         "admit_behind.sql",
		qAdmitUnclaimed:      "admit_unclaimed.sql",
		qAdmitKey:            "admit_key.sql",
		qAdmitLook:           "admit_look.sql",
		qAdmitLookAll:        "admit_look_all.sql",
		qAdmitRunWrite:       "admit_run_write.sql",
		qAdmitPlaceWrite:     "admit_place_write.sql",
		qAdmitKeyWrite:       "admit_key_write.sql",
		qAdmitKeyDelete:      "admit_key_delete.sql",
		qAdmitQueueWrite:     "admit_queue_write.sql",
		qAdmitQueueDelete:    "admit_queue_delete.sql",
		qAdmitKeysDelete:     "admit_keys_delete.sql",
		qLimitDeclare:        "limit_declare.sql",
		qLimitSet:            "limit_set.sql",
		qLimitDelete:         "limit_delete.sql",
		qPermitsOf:           "permits_of.sql",
		qLimits:              "limits.sql",
		qLimitUse:            "limit_use.sql",
		qQueueRows:           "queue_rows.sql",
		qQueueDeclare:        "queue_declare.sql",
		qQueueSet:            "queue_set.sql",
		qQueuePause:          "queue_pause.sql",
		qQueueResume:         "queue_resume.sql",
		qQueueDelete:         "queue_delete.sql",
		qQueueDepth:          "queue_depth.sql",
		qQueues:              "queues.sql",
		qQueueKeys:           "queue_keys.sql",
		qPlaceInsert:         "place_insert.sql",
		qPlaceOf:             "place_of.sql",
		qPlaceDeleteFree:     "place_delete_free.sql",
		qStartByNote:         "start_by_note.sql",
		qStartByKeep:         "start_by_keep.sql",
		qFoldByKey:           "fold_by_key.sql",
		qFoldUpsert:          "fold_upsert.sql",
		qFoldDelete:          "fold_delete.sql",
		qFoldDue:             "fold_due.sql",
		qFoldEnded:           "fold_ended.sql",
		qFoldRun:             "fold_run.sql",
		qFoldRelease:         "fold_release.sql",
		qScheduleDue:         "schedule_due.sql",
		qScheduleWaiting:     "schedule_waiting.sql",
		qScheduleByName:      "schedule_by_name.sql",
		qSchedules:           "schedules.sql",
		qScheduleInsert:      "schedule_insert.sql",
		qScheduleUpdate:      "schedule_update.sql",
		qScheduleDelete:      "schedule_delete.sql",
		qFireUpsert:          "fire_upsert.sql",
		qFireStarted:         "fire_started.sql",
		qFireLatest:          "fire_latest.sql",
		qFireOldest:          "fire_oldest.sql",
		qFireDelete:          "fire_delete.sql",
		qFireDeleteAll:       "fire_delete_all.sql",
		qFiredRead:           "fired_read.sql",
		qFiredUpsert:         "fired_upsert.sql",
		qFiredDeleteAll:      "fired_delete_all.sql",
		qWorkerUpsert:        "worker_upsert.sql",
		qWorkerDelete:        "worker_delete.sql",
		qWorkerDeleteOld:     "worker_delete_old.sql",
		qTerminatedDeleteOld: "terminated_delete_old.sql",
		qListGroup:           "list_group.sql",
		qListName:            "list_name.sql",
		qListTagKey:          "list_tag_key.sql",
		qTree:                "tree.sql",
		qTreeCounts:          "tree_counts.sql",
		qTreeOpenCalls:       "tree_open_calls.sql",
		qWorkers:             "workers.sql",
		qWorkersLive:         "workers_live.sql",
		qLaneLongestDue:      "lane_longest_due.sql",
		qLaneNext:            "lane_next.sql",
		qDataVersion:         "data_version.sql",
		qEncoding:            "encoding.sql",
		qJournalWAL:          "journal_wal.sql",
		qMigrationTable:      "migration_table.sql",
		qMigrationExists:     "migration_exists.sql",
		qMigrationVersion:    "migration_version.sql",
		qMigrationInsert:     "migration_insert.sql",
	}[q]
}

// statementTexts holds the text of every statement.
type statementTexts [queryCount]string

// loadStatements reads the embedded files. It trims what follows the statement: the driver treats any text after it,
// even a line feed, as a second statement, and would parse the text again at each use.
func loadStatements() *statementTexts {
	var all statementTexts
	for q := qBegin; q < queryCount; q++ {
		b, err := sqlFiles.ReadFile("sql/" + sqlFile(q))
		if err != nil {
			panic("sqlite: the embedded statement is missing: " + err.Error())
		}
		all[q] = strings.TrimRight(string(b), "; \t\r\n")
	}
	return &all
}
