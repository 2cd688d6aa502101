package sqlite

import (
	"embed"
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
	qTxStepSavepointCreate
	qTxStepSavepointRelease
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
	qRunHoldAfterRejectedWrite
	qRunWake
	qRunByID
	qRunByName
	qRunState
	qRunNameAndWorkflow
	qSignalInsert
	qSignalByID
	qSignalByKey
	qSignalOldestWaiting
	qSignalMarkReceived
	qSignalsUnreceivedCount
	qNextRunWithUnreceivedSignal
	qEventInsert
	qEventsPage
	qEventCursorValid
	qTagSet
	qTagDelete
	qRunTags
	qLaneNextWakeTime
	qLaneLongestDueRun
	qLaneNextWithRuns
	qClaimDueRuns
	qClaimDueRunsCrashedTwice
	qClaimRun
	qClaimPauseCrashed
	qClaimFinishRequestedPause
	qLeasesOfClaim
	qControlRunTreeRead
	qControlAncestorRead
	qControlApply
	qControlShiftRunDeadline
	qControlShiftStepWakeTimes
	qControlShiftStepStartTimes
	qNotifications
	qRunWokenClear
	qTerminationNoticesRead
	qTerminationNoticeInsert
	qTerminationNoticesDelete
	qRunDeadlineSet
	qRunsList
	qRunsListByTag
	qRunsCountByRunNamePrefix
	qRunsCountByTagKey
	qLeaseExtend
	qLeaseExpire
	qTokenSigningKey
	qTokenSigningKeyInsert
	qPermitLineLock
	qPermitReturn
	qPermitLimitBounds
	qPermitsInUse
	qPermitsWaiting
	qPermitRequestingRun
	qPermitByStep
	qPermitDelete
	qPermitUpsert
	qPermitLineUpdateGranted
	qPermitNextWaitingLine
	qQueueMoveRunRead
	qQueueMoveRunUpdate
	qQueueMovePlaceWrite
	qEventInsertWithValues
	qAdmitQueueRead
	qAdmitHasWork
	qAdmitNextCheckTime
	qAdmitRunsLosingPlace
	qAdmitDueRuns
	qAdmitUnseenRuns
	qAdmitRunsOfDeletedQueue
	qAdmitRunsInLine
	qAdmitRunsBehindKey
	qAdmitUnclaimedCount
	qAdmitRunsUnclaimed
	qAdmitKeyRead
	qAdmitKeysToCheck
	qAdmitKeysMarkAllToCheck
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
	qQueueReset
	qQueueDepth
	qQueuePlaceInsert
	qQueuePlaceOfRun
	qQueuePlaceDeleteUnneeded
	qStartByDeadlineMarkSet
	qStartByDeadlineMarkClear
	qLimitDelete
	qLimitReset
	qSchedulesDue
	qSchedulesWaitingLastRunEnded
	qScheduleByName
	qSchedulesPage
	qScheduleInsert
	qScheduleUpdate
	qScheduleDelete
	qScheduleFireUpsert
	qScheduleFiresByTime
	qScheduleFiresLatest
	qScheduleFiresOldest
	qScheduleFireDelete
	qScheduleFiresDeleteAll
	qScheduleCompactedFiresRead
	qScheduleCompactedFiresUpsert
	qScheduleCompactedFiresDeleteAll
	qStartFoldKeyRead
	qStartFoldKeyOfWaiting
	qStartFoldKeyUpsert
	qStartFoldKeyDelete
	qStartFoldKeysDue
	qStartFoldKeysRunEnded
	qStartFoldRunState
	qStartFoldRunRelease
	qRepairFence
	qRepairIsDone
	qRepairGenerationInsert
	qRepairStepsArchive
	qRepairStepKeep
	qRepairStepWrite
	qRepairChildDetach
	qRepairSignalsRelease
	qRepairRun
	qRepairPlacePassed
	qGenerations
	qWorkerUpsert
	qWorkerDelete

	// The statements from here on sort their results or scan a whole table.
	qRunsListByRunNamePrefix
	qRunsListByTagKey
	qRunsListByGroupKey
	qRunTree
	qRunTreeCounts
	qRunTreeOpenCalls
	qWorkers
	qWorkersLiveWorkflows
	qWorkerDeleteOld
	qTerminationNoticesDeleteOld
	qDataVersion
	qTextEncoding
	qJournalModeWAL
	qMigrationTableCreate
	qMigrationTableExists
	qMigrationVersion
	qMigrationInsert
	qLimitDeclare
	qPermitsOfRun
	qLimits
	qLimitUsage
	qQueueRows
	qQueueDeclare
	qQueues
	qQueueKeys
	queryCount
)

// sqlFile returns the name of the file that holds a statement.
func sqlFile(q queryID) string {
	return [queryCount]string{
		qRepairFence:                     "repair_fence.sql",
		qRepairIsDone:                    "repair_is_done.sql",
		qRepairGenerationInsert:          "repair_generation_insert.sql",
		qRepairStepsArchive:              "repair_steps_archive.sql",
		qRepairStepKeep:                  "repair_step_keep.sql",
		qRepairStepWrite:                 "repair_step_write.sql",
		qRepairChildDetach:               "repair_child_detach.sql",
		qRepairSignalsRelease:            "repair_signals_release.sql",
		qRepairRun:                       "repair_run.sql",
		qRepairPlacePassed:               "repair_place_passed.sql",
		qGenerations:                     "generations.sql",
		qBegin:                           "begin.sql",
		qCommit:                          "commit.sql",
		qRollback:                        "rollback.sql",
		qTxStepSavepointCreate:           "tx_step_savepoint_create.sql",
		qTxStepSavepointRelease:          "tx_step_savepoint_release.sql",
		qStepInsert:                      "step_insert.sql",
		qStepInsertCompleted:             "step_insert_completed.sql",
		qStepUpdate:                      "step_update.sql",
		qStepByName:                      "step_by_name.sql",
		qHistory:                         "history.sql",
		qStepsTerminalCount:              "steps_terminal_count.sql",
		qStepsOpen:                       "steps_open.sql",
		qRunChoices:                      "run_choices.sql",
		qRunLastLeaseLoss:                "run_last_lease_loss.sql",
		qRunMaps:                         "run_maps.sql",
		qMapItemsDoneCount:               "map_items_done_count.sql",
		qRunInsert:                       "run_insert.sql",
		qRunInsertChild:                  "run_insert_child.sql",
		qRunFinish:                       "run_finish.sql",
		qRunMarkPaused:                   "run_mark_paused.sql",
		qRunHoldAfterRejectedWrite:       "run_hold_after_rejected_write.sql",
		qRunWake:                         "run_wake.sql",
		qRunByID:                         "run_by_id.sql",
		qRunByName:                       "run_by_name.sql",
		qRunState:                        "run_state.sql",
		qRunNameAndWorkflow:              "run_name_and_workflow.sql",
		qSignalInsert:                    "signal_insert.sql",
		qSignalByID:                      "signal_by_id.sql",
		qSignalByKey:                     "signal_by_key.sql",
		qSignalOldestWaiting:             "signal_oldest_waiting.sql",
		qSignalMarkReceived:              "signal_mark_received.sql",
		qSignalsUnreceivedCount:          "signals_unreceived_count.sql",
		qNextRunWithUnreceivedSignal:     "next_run_with_unreceived_signal.sql",
		qEventInsert:                     "event_insert.sql",
		qEventsPage:                      "events_page.sql",
		qEventCursorValid:                "event_cursor_valid.sql",
		qTagSet:                          "tag_set.sql",
		qTagDelete:                       "tag_delete.sql",
		qRunTags:                         "run_tags.sql",
		qLaneNextWakeTime:                "lane_next_wake_time.sql",
		qClaimDueRuns:                    "claim_due_runs.sql",
		qClaimDueRunsCrashedTwice:        "claim_due_runs_crashed_twice.sql",
		qClaimRun:                        "claim_run.sql",
		qHistoryPart:                     "history_part.sql",
		qLeasesOfClaim:                   "leases_of_claim.sql",
		qClaimPauseCrashed:               "claim_pause_crashed.sql",
		qClaimFinishRequestedPause:       "claim_finish_requested_pause.sql",
		qControlRunTreeRead:              "control_run_tree_read.sql",
		qControlAncestorRead:             "control_ancestor_read.sql",
		qControlApply:                    "control_apply.sql",
		qControlShiftRunDeadline:         "control_shift_run_deadline.sql",
		qControlShiftStepWakeTimes:       "control_shift_step_wake_times.sql",
		qControlShiftStepStartTimes:      "control_shift_step_start_times.sql",
		qNotifications:                   "notifications.sql",
		qRunWokenClear:                   "run_woken_clear.sql",
		qTerminationNoticesRead:          "termination_notices_read.sql",
		qTerminationNoticeInsert:         "termination_notice_insert.sql",
		qTerminationNoticesDelete:        "termination_notices_delete.sql",
		qRunDeadlineSet:                  "run_deadline_set.sql",
		qRunsList:                        "runs_list.sql",
		qRunsListByTag:                   "runs_list_by_tag.sql",
		qRunsCountByRunNamePrefix:        "runs_count_by_run_name_prefix.sql",
		qRunsCountByTagKey:               "runs_count_by_tag_key.sql",
		qLeaseExtend:                     "lease_extend.sql",
		qLeaseExpire:                     "lease_expire.sql",
		qTokenSigningKey:                 "token_signing_key.sql",
		qTokenSigningKeyInsert:           "token_signing_key_insert.sql",
		qPermitLineLock:                  "permit_line_lock.sql",
		qPermitReturn:                    "permit_return.sql",
		qPermitLimitBounds:               "permit_limit_bounds.sql",
		qPermitsInUse:                    "permits_in_use.sql",
		qPermitsWaiting:                  "permits_waiting.sql",
		qPermitRequestingRun:             "permit_requesting_run.sql",
		qPermitByStep:                    "permit_by_step.sql",
		qPermitDelete:                    "permit_delete.sql",
		qPermitUpsert:                    "permit_upsert.sql",
		qPermitLineUpdateGranted:         "permit_line_update_granted.sql",
		qPermitNextWaitingLine:           "permit_next_waiting_line.sql",
		qAdmitQueueRead:                  "admit_queue_read.sql",
		qAdmitHasWork:                    "admit_has_work.sql",
		qAdmitNextCheckTime:              "admit_next_check_time.sql",
		qAdmitRunsLosingPlace:            "admit_runs_losing_place.sql",
		qAdmitDueRuns:                    "admit_due_runs.sql",
		qAdmitUnseenRuns:                 "admit_unseen_runs.sql",
		qAdmitRunsOfDeletedQueue:         "admit_runs_of_deleted_queue.sql",
		qAdmitRunsInLine:                 "admit_runs_in_line.sql",
		qAdmitRunsBehindKey:              "admit_runs_behind_key.sql",
		qAdmitUnclaimedCount:             "admit_unclaimed_count.sql",
		qAdmitRunsUnclaimed:              "admit_runs_unclaimed.sql",
		qAdmitKeyRead:                    "admit_key_read.sql",
		qAdmitKeysToCheck:                "admit_keys_to_check.sql",
		qAdmitKeysMarkAllToCheck:         "admit_keys_mark_all_to_check.sql",
		qAdmitRunUpdate:                  "admit_run_update.sql",
		qAdmitPlaceUpsert:                "admit_place_upsert.sql",
		qAdmitKeyUpsert:                  "admit_key_upsert.sql",
		qAdmitKeyDelete:                  "admit_key_delete.sql",
		qAdmitPlaceDelete:                "admit_place_delete.sql",
		qAdmitQueueUpdate:                "admit_queue_update.sql",
		qAdmitQueueDelete:                "admit_queue_delete.sql",
		qAdmitKeysDelete:                 "admit_keys_delete.sql",
		qLimitDeclare:                    "limit_declare.sql",
		qLimitSet:                        "limit_set.sql",
		qLimitDelete:                     "limit_delete.sql",
		qLimitReset:                      "limit_reset.sql",
		qPermitsOfRun:                    "permits_of_run.sql",
		qLimits:                          "limits.sql",
		qLimitUsage:                      "limit_usage.sql",
		qQueueRows:                       "queue_rows.sql",
		qQueueDeclare:                    "queue_declare.sql",
		qQueueSet:                        "queue_set.sql",
		qQueuePause:                      "queue_pause.sql",
		qQueueResume:                     "queue_resume.sql",
		qQueueDelete:                     "queue_delete.sql",
		qQueueReset:                      "queue_reset.sql",
		qQueueDepth:                      "queue_depth.sql",
		qQueues:                          "queues.sql",
		qQueueKeys:                       "queue_keys.sql",
		qQueuePlaceInsert:                "queue_place_insert.sql",
		qQueuePlaceOfRun:                 "queue_place_of_run.sql",
		qQueuePlaceDeleteUnneeded:        "queue_place_delete_if_unneeded.sql",
		qStartByDeadlineMarkSet:          "start_by_deadline_mark_set.sql",
		qStartByDeadlineMarkClear:        "start_by_deadline_mark_clear.sql",
		qStartFoldKeyRead:                "start_fold_key_read.sql",
		qStartFoldKeyOfWaiting:           "start_fold_key_of_waiting.sql",
		qStartFoldKeyUpsert:              "start_fold_key_upsert.sql",
		qStartFoldKeyDelete:              "start_fold_key_delete.sql",
		qStartFoldKeysDue:                "start_fold_keys_by_look_at.sql",
		qStartFoldKeysRunEnded:           "start_fold_keys_run_ended.sql",
		qStartFoldRunState:               "start_fold_run_state.sql",
		qStartFoldRunRelease:             "start_fold_run_release.sql",
		qSchedulesDue:                    "schedules_due.sql",
		qSchedulesWaitingLastRunEnded:    "schedules_waiting_last_run_ended.sql",
		qScheduleByName:                  "schedule_by_name.sql",
		qSchedulesPage:                   "schedules_page.sql",
		qScheduleInsert:                  "schedule_insert.sql",
		qScheduleUpdate:                  "schedule_update.sql",
		qScheduleDelete:                  "schedule_delete.sql",
		qScheduleFireUpsert:              "schedule_fire_upsert.sql",
		qScheduleFiresByTime:             "schedule_fires_by_time.sql",
		qScheduleFiresLatest:             "schedule_fires_latest.sql",
		qScheduleFiresOldest:             "schedule_fires_oldest.sql",
		qScheduleFireDelete:              "schedule_fire_delete.sql",
		qScheduleFiresDeleteAll:          "schedule_fires_delete_all.sql",
		qScheduleCompactedFiresRead:      "schedule_compacted_fires_read.sql",
		qScheduleCompactedFiresUpsert:    "schedule_compacted_fires_upsert.sql",
		qScheduleCompactedFiresDeleteAll: "schedule_compacted_fires_delete_all.sql",
		qWorkerUpsert:                    "worker_upsert.sql",
		qWorkerDelete:                    "worker_delete.sql",
		qWorkerDeleteOld:                 "worker_delete_old.sql",
		qQueueMoveRunRead:                "queue_move_run_read.sql",
		qQueueMoveRunUpdate:              "queue_move_run_update.sql",
		qQueueMovePlaceWrite:             "queue_move_place_write.sql",
		qEventInsertWithValues:           "event_insert_with_values.sql",
		qTerminationNoticesDeleteOld:     "termination_notices_delete_old.sql",
		qRunsListByGroupKey:              "runs_list_by_group_key.sql",
		qRunsListByRunNamePrefix:         "runs_list_by_run_name_prefix.sql",
		qRunsListByTagKey:                "runs_list_by_tag_key.sql",
		qRunTree:                         "run_tree.sql",
		qRunTreeCounts:                   "run_tree_counts.sql",
		qRunTreeOpenCalls:                "run_tree_open_calls.sql",
		qWorkers:                         "workers.sql",
		qWorkersLiveWorkflows:            "workers_live_workflows.sql",
		qLaneLongestDueRun:               "lane_longest_due_run.sql",
		qLaneNextWithRuns:                "lane_next_with_runs.sql",
		qDataVersion:                     "data_version.sql",
		qTextEncoding:                    "text_encoding.sql",
		qJournalModeWAL:                  "journal_mode_wal.sql",
		qMigrationTableCreate:            "migration_table_create.sql",
		qMigrationTableExists:            "migration_table_exists.sql",
		qMigrationVersion:                "migration_version.sql",
		qMigrationInsert:                 "migration_insert.sql",
	}[q]
}
