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
	qTxSavepointCreate
	qTxSavepointRelease
	qStepInsert
	qStepInsertCompleted
	qStepUpdate
	qStepByName
	qHistory
	qHistoryPart
	qStepsTerminalCount
	qStepsOpen
	qRunChoices
	qRunLastLeaseLoss
	qRunMaps
	qMapItemsDoneCount
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
	qSignalOldestWaiting
	qSignalMarkReceived
	qSignalsUnreceived
	qSignalNextRunUnreceived
	qEventInsert
	qEventsPage
	qEventCursorValid
	qTagSet
	qTagDelete
	qRunTags
	qLaneNextWake
	qLaneLongestDue
	qLaneNext
	qClaimDueRuns
	qClaimCrashedTwice
	qClaimRun
	qClaimPauseCrashed
	qClaimAlreadyPaused
	qClaimedLeases
	qControlTree
	qControlAncestor
	qControlApply
	qControlShiftRun
	qControlShiftSteps
	qControlShiftStarts
	qNotifications
	qRunWokenClear
	qTerminationNoticesRead
	qTerminationNoticeInsert
	qTerminationNoticesDelete
	qRunDeadlineSet
	qRunsList
	qRunsListByTag
	qRunsCountByNamePrefix
	qRunsCountByTagKey
	qLeaseExtend
	qLeaseExpire
	qTokenKey
	qTokenKeyInsert
	qPermitLineLock
	qPermitReturn
	qPermitLimitBounds
	qPermitsInUse
	qPermitsWaiting
	qPermitByStep
	qPermitDelete
	qPermitUpsert
	qPermitLineUpdateGranted
	qPermitNextWaitingLine
	qRequeueRead
	qRequeueWrite
	qRequeuePlaceWrite
	qRequeueEvent
	qAdmitQueueRead
	qAdmitHasWork
	qAdmitNextTime
	qAdmitDepartedRuns
	qAdmitDueRuns
	qAdmitStrayRuns
	qAdmitLiveRuns
	qAdmitRunsInLine
	qAdmitRunsBehindKey
	qAdmitUnclaimedCount
	qAdmitKeyRead
	qAdmitKeysToCheck
	qAdmitKeysCheckAll
	qAdmitRunUpdate
	qAdmitPlaceUpsert
	qAdmitKeyUpsert
	qAdmitKeyDelete
	qAdmitPlaceDelete
	qAdmitQueueUpdate
	qAdmitQueueDelete
	qAdmitKeysDelete
	qLimitSet
	qQueueSet
	qQueuePause
	qQueueResume
	qQueueDelete
	qQueueDepth
	qPlaceInsert
	qPlaceOfRun
	qPlaceDeleteUnneeded
	qStartByMarkSet
	qStartByMarkClear
	qLimitDelete
	qSchedulesDue
	qSchedulesWaitingReady
	qScheduleByName
	qSchedulesPage
	qScheduleInsert
	qScheduleUpdate
	qScheduleDelete
	qFireUpsert
	qFiresByTime
	qFiresLatest
	qFiresOldest
	qFireDelete
	qFireDeleteAll
	qFoldedFiresRead
	qFoldedFiresUpsert
	qFoldedFiresDeleteAll
	qFoldKeyRead
	qFoldKeyUpsert
	qFoldKeyDelete
	qFoldKeysDue
	qFoldKeysRunEnded
	qFoldRunState
	qFoldRunRelease
	qWorkerUpsert
	qWorkerDelete

	// The statements from here on sort their results or scan a whole table.
	qRunsListByNamePrefix
	qRunsListByTagKey
	qRunsListByGroupKey
	qRunTree
	qRunTreeCounts
	qRunTreeOpenCalls
	qWorkers
	qWorkersLive
	qWorkerDeleteOld
	qTerminationNoticesDeleteOld
	qDataVersion
	qTextEncoding
	qJournalModeWAL
	qMigrationTableCreate
	qMigrationExists
	qMigrationVersion
	qMigrationInsert
	qLimitDeclare
	qPermitsOfRun
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
		qBegin:                       "begin.sql",
		qCommit:                      "commit.sql",
		qRollback:                    "rollback.sql",
		qTxSavepointCreate:           "tx_savepoint_create.sql",
		qTxSavepointRelease:          "tx_savepoint_release.sql",
		qStepInsert:                  "step_insert.sql",
		qStepInsertCompleted:         "step_insert_completed.sql",
		qStepUpdate:                  "step_update.sql",
		qStepByName:                  "step_by_name.sql",
		qHistory:                     "history.sql",
		qStepsTerminalCount:          "steps_terminal_count.sql",
		qStepsOpen:                   "steps_open.sql",
		qRunChoices:                  "run_choices.sql",
		qRunLastLeaseLoss:            "run_last_lease_loss.sql",
		qRunMaps:                     "run_maps.sql",
		qMapItemsDoneCount:           "map_items_done_count.sql",
		qRunInsert:                   "run_insert.sql",
		qRunInsertChild:              "run_insert_child.sql",
		qRunFinish:                   "run_finish.sql",
		qRunMarkPaused:               "run_mark_paused.sql",
		qRunHold:                     "run_hold.sql",
		qRunWake:                     "run_wake.sql",
		qRunByID:                     "run_by_id.sql",
		qRunByName:                   "run_by_name.sql",
		qRunState:                    "run_state.sql",
		qRunNames:                    "run_names.sql",
		qSignalInsert:                "signal_insert.sql",
		qSignalByID:                  "signal_by_id.sql",
		qSignalByKey:                 "signal_by_key.sql",
		qSignalOldestWaiting:         "signal_oldest_waiting.sql",
		qSignalMarkReceived:          "signal_mark_received.sql",
		qSignalsUnreceived:           "signals_unreceived.sql",
		qSignalNextRunUnreceived:     "signal_next_run_unreceived.sql",
		qEventInsert:                 "event_insert.sql",
		qEventsPage:                  "events_page.sql",
		qEventCursorValid:            "event_cursor_valid.sql",
		qTagSet:                      "tag_set.sql",
		qTagDelete:                   "tag_delete.sql",
		qRunTags:                     "run_tags.sql",
		qLaneNextWake:                "lane_next_wake.sql",
		qClaimDueRuns:                "claim_due_runs.sql",
		qClaimCrashedTwice:           "claim_crashed_twice.sql",
		qClaimRun:                    "claim_run.sql",
		qHistoryPart:                 "history_part.sql",
		qClaimedLeases:               "claimed_leases.sql",
		qClaimPauseCrashed:           "claim_pause_crashed.sql",
		qClaimAlreadyPaused:          "claim_already_paused.sql",
		qControlTree:                 "control_tree.sql",
		qControlAncestor:             "control_ancestor.sql",
		qControlApply:                "control_apply.sql",
		qControlShiftRun:             "control_shift_run.sql",
		qControlShiftSteps:           "control_shift_steps.sql",
		qControlShiftStarts:          "control_shift_starts.sql",
		qNotifications:               "notifications.sql",
		qRunWokenClear:               "run_woken_clear.sql",
		qTerminationNoticesRead:      "termination_notices_read.sql",
		qTerminationNoticeInsert:     "termination_notice_insert.sql",
		qTerminationNoticesDelete:    "termination_notices_delete.sql",
		qRunDeadlineSet:              "run_deadline_set.sql",
		qRunsList:                    "runs_list.sql",
		qRunsListByTag:               "runs_list_by_tag.sql",
		qRunsCountByNamePrefix:       "runs_count_by_name_prefix.sql",
		qRunsCountByTagKey:           "runs_count_by_tag_key.sql",
		qLeaseExtend:                 "lease_extend.sql",
		qLeaseExpire:                 "lease_expire.sql",
		qTokenKey:                    "token_key.sql",
		qTokenKeyInsert:              "token_key_insert.sql",
		qPermitLineLock:              "permit_line_lock.sql",
		qPermitReturn:                "permit_return.sql",
		qPermitLimitBounds:           "permit_limit_bounds.sql",
		qPermitsInUse:                "permits_in_use.sql",
		qPermitsWaiting:              "permits_waiting.sql",
		qPermitByStep:                "permit_by_step.sql",
		qPermitDelete:                "permit_delete.sql",
		qPermitUpsert:                "permit_upsert.sql",
		qPermitLineUpdateGranted:     "permit_line_update_granted.sql",
		qPermitNextWaitingLine:       "permit_next_waiting_line.sql",
		qAdmitQueueRead:              "admit_queue_read.sql",
		qAdmitHasWork:                "admit_has_work.sql",
		qAdmitNextTime:               "admit_next_time.sql",
		qAdmitDepartedRuns:           "admit_departed_runs.sql",
		qAdmitDueRuns:                "admit_due_runs.sql",
		qAdmitStrayRuns:              "admit_stray_runs.sql",
		qAdmitLiveRuns:               "admit_live_runs.sql",
		qAdmitRunsInLine:             "admit_runs_in_line.sql",
		qAdmitRunsBehindKey:          "admit_runs_behind_key.sql",
		qAdmitUnclaimedCount:         "admit_unclaimed_count.sql",
		qAdmitKeyRead:                "admit_key_read.sql",
		qAdmitKeysToCheck:            "admit_keys_to_check.sql",
		qAdmitKeysCheckAll:           "admit_keys_check_all.sql",
		qAdmitRunUpdate:              "admit_run_update.sql",
		qAdmitPlaceUpsert:            "admit_place_upsert.sql",
		qAdmitKeyUpsert:              "admit_key_upsert.sql",
		qAdmitKeyDelete:              "admit_key_delete.sql",
		qAdmitPlaceDelete:            "admit_place_delete.sql",
		qAdmitQueueUpdate:            "admit_queue_update.sql",
		qAdmitQueueDelete:            "admit_queue_delete.sql",
		qAdmitKeysDelete:             "admit_keys_delete.sql",
		qLimitDeclare:                "limit_declare.sql",
		qLimitSet:                    "limit_set.sql",
		qLimitDelete:                 "limit_delete.sql",
		qPermitsOfRun:                "permits_of_run.sql",
		qLimits:                      "limits.sql",
		qLimitUse:                    "limit_use.sql",
		qQueueRows:                   "queue_rows.sql",
		qQueueDeclare:                "queue_declare.sql",
		qQueueSet:                    "queue_set.sql",
		qQueuePause:                  "queue_pause.sql",
		qQueueResume:                 "queue_resume.sql",
		qQueueDelete:                 "queue_delete.sql",
		qQueueDepth:                  "queue_depth.sql",
		qQueues:                      "queues.sql",
		qQueueKeys:                   "queue_keys.sql",
		qPlaceInsert:                 "place_insert.sql",
		qPlaceOfRun:                  "place_of_run.sql",
		qPlaceDeleteUnneeded:         "place_delete_unneeded.sql",
		qStartByMarkSet:              "start_by_mark_set.sql",
		qStartByMarkClear:            "start_by_mark_clear.sql",
		qFoldKeyRead:                 "fold_key_read.sql",
		qFoldKeyUpsert:               "fold_key_upsert.sql",
		qFoldKeyDelete:               "fold_key_delete.sql",
		qFoldKeysDue:                 "fold_keys_due.sql",
		qFoldKeysRunEnded:            "fold_keys_run_ended.sql",
		qFoldRunState:                "fold_run_state.sql",
		qFoldRunRelease:              "fold_run_release.sql",
		qSchedulesDue:                "schedules_due.sql",
		qSchedulesWaitingReady:       "schedules_waiting_ready.sql",
		qScheduleByName:              "schedule_by_name.sql",
		qSchedulesPage:               "schedules_page.sql",
		qScheduleInsert:              "schedule_insert.sql",
		qScheduleUpdate:              "schedule_update.sql",
		qScheduleDelete:              "schedule_delete.sql",
		qFireUpsert:                  "fire_upsert.sql",
		qFiresByTime:                 "fires_by_time.sql",
		qFiresLatest:                 "fires_latest.sql",
		qFiresOldest:                 "fires_oldest.sql",
		qFireDelete:                  "fire_delete.sql",
		qFireDeleteAll:               "fire_delete_all.sql",
		qFoldedFiresRead:             "folded_fires_read.sql",
		qFoldedFiresUpsert:           "folded_fires_upsert.sql",
		qFoldedFiresDeleteAll:        "folded_fires_delete_all.sql",
		qWorkerUpsert:                "worker_upsert.sql",
		qWorkerDelete:                "worker_delete.sql",
		qWorkerDeleteOld:             "worker_delete_old.sql",
		qRequeueRead:                 "requeue_read.sql",
		qRequeueWrite:                "requeue_write.sql",
		qRequeuePlaceWrite:           "requeue_place_write.sql",
		qRequeueEvent:                "requeue_event.sql",
		qTerminationNoticesDeleteOld: "termination_notices_delete_old.sql",
		qRunsListByGroupKey:          "runs_list_by_group_key.sql",
		qRunsListByNamePrefix:        "runs_list_by_name_prefix.sql",
		qRunsListByTagKey:            "runs_list_by_tag_key.sql",
		qRunTree:                     "run_tree.sql",
		qRunTreeCounts:               "run_tree_counts.sql",
		qRunTreeOpenCalls:            "run_tree_open_calls.sql",
		qWorkers:                     "workers.sql",
		qWorkersLive:                 "workers_live.sql",
		qLaneLongestDue:              "lane_longest_due.sql",
		qLaneNext:                    "lane_next.sql",
		qDataVersion:                 "data_version.sql",
		qTextEncoding:                "text_encoding.sql",
		qJournalModeWAL:              "journal_mode_wal.sql",
		qMigrationTableCreate:        "migration_table_create.sql",
		qMigrationExists:             "migration_exists.sql",
		qMigrationVersion:            "migration_version.sql",
		qMigrationInsert:             "migration_insert.sql",
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
