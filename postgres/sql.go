package postgres

import (
	"embed"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed sql/*.sql
var files embed.FS

// These statements frame a pipeline that is not a transaction by itself. BEGIN names the isolation level,
// because the default of a database may be another one.
const (
	beginSQL    = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
	commitSQL   = "COMMIT"
	rollbackSQL = "ROLLBACK"
)

// statements holds the texts of the .sql files for one schema.
type statements struct {
	setEngineSessionSettings                                                                                                                                                                                                            string
	runsLockForBatch, runInsert, runInsertOne, runInsertGeneratedIds, runInsertGeneratedID, runInsertAny, runByName, statesOfParents                                                                                                    string
	stepInsert, stepInsertOne, stepInsertIfAbsent, stepUpdate, stepNotWrittenReasons                                                                                                                                                    string
	signalReceive, signalInsert, signalInsertWithEvent, signalNotStoredReasons, signalsUnreceivedCount                                                                                                                                  string
	runFinish, runFinishOne, runEndOwnership, runHoldAfterRejectedWrite, runState, runWake, notify, setLockTimeout, setTransactionTimeouts, setAsyncTransactionTimeouts                                                                 string
	controlRunTreeLock, controlRunTreeRead, controlShiftTimers, controlApply, runDeadlineSet                                                                                                                                            string
	claimRuns, claimCheckLanesAndVersions, lanesFindUnknown, claimHistories, historyPart, writersInFlight, leasesOfClaim                                                                                                                string
	sharedWriterLockSession, sharedWriterLockTx, walPosition, ownedRunsCheckpoints, childEndsCountAndWakeParents, childEndsSetAwaitedCount                                                                                              string
	workerUpsert, workerSetQuiet, leaseExtend, leasesLost                                                                                                                                                                               string
	leasesOfDeadWorkerExpire, workerDelete, workers, lanesOverdue, workflowsWithLiveWorker                                                                                                                                              string
	runByID, runStatuses, history, historyWithoutPayloads, checkpointsByName, runFingerprints, now, ownedRunChanges                                                                                                                     string
	stepsOpen, recordedChoices, runLastLeaseLoss, mapProgress, runTags, runFirstInput, tagSet                                                                                                                                           string
	runsList, runsListByTag, runsListByTagKey, runsListByRunNamePrefix, runTree, runTreeCounts, eventsPage, eventsPageBefore, eventCursorValid                                                                                          string
	listenSessionSettings, listen, presenceLock, presenceUnlock, unlisten, heldLocks, presenceLockRecord, presenceDeadWorkers                                                                                                           string
	txStepCheckpoint, txStepRunLock, waitForStandbys                                                                                                                                                                                    string
	migrationLock, migrationPreconditions, migrationVersion, migrationNoTimeouts                                                                                                                                                        string
	limitKeyLock, permitReturn, permitLimitBlockAfterFailover, permitLimitBounds, permitsOfLimitKeys, permitRequestingStepsRead                                                                                                         string
	permitDelete, permitUpsert, permitOffer, limitKeyRecordGrant, limitKeysDeleteUnused                                                                                                                                                 string
	limitKeysWithWaiters, permitsOfRun, limitDeclare, limitSetBounds, limitDelete, limitResetToDeclared                                                                                                                                 string
	limits, limitUsage, queuesWithoutCounts, queueDeclare, queueSetSettings, queuePause                                                                                                                                                 string
	queueResume, queueMarkDeleted, queueResetToDeclared, queuesWithCounts, queueBusiestGroupKeys, queueDepth, queuePlaceOfRun                                                                                                           string
	admissionQueueLock, admissionHasWork, admissionRunsLock, admissionIdleRunsLock, admissionRunsWithRecordedEnd, admissionUnclaimedRunsCount, admissionUnclaimedRunsByGroupKey, admissionRunsInLineLock, admissionGroupKeysDueForCheck string
	admissionGroupKeysRead, admissionRunsBehindGroupKeyLock, admissionRunUpdate, admissionPlaceUpsert, admissionGroupKeyCountsUpsert                                                                                                    string
	admissionGroupKeyDelete, admissionGroupKeysMarkAllForCheck, admissionQueueCountsUpdate, admissionQueueDeleteIfEmpty, admissionEndedPlaceDelete                                                                                      string
	queueMoveRunQueueRead, queueMoveQueueLock, queueMoveRunLock, queueMoveRunRead, queueMoveGroupKeyRead, queueMoveRunUpdate, queueMovePlaceWrite                                                                                       string
	runsSearch, runsListByFailure, runsListByStatus, runsListByOwner, runsListHeld, failureGroups, statusCounts, eventNewest                                                                                                            string
	runInsertWithPlace, startByDeadlineMarkClear, runsListByGroupKey, runsListByID, runsListByParent                                                                                                                                    string
	txStepBegin, txStepCheckBegun, untrustedOwners, userTxSyncCommit, userTxSetSettings, userTxRestoreSettings, tokenSigningKey, tokenSigningKeyInsert                                                                                  string
	schedulesDue, schedulesWaitingLastRunEnded, scheduleLock, scheduleTryLock, scheduleLastRunState                                                                                                                                     string
	scheduleByName, schedulesPage, scheduleInsert, scheduleUpdate, scheduleDelete                                                                                                                                                       string
	scheduleFireUpsert, scheduleFiresByTime, scheduleFiresLatest, scheduleFiresToCompact, scheduleFireDeleteCompacted, scheduleFiresDeleteAll                                                                                           string
	scheduleFireBitmapsRead, scheduleFireBitmapsUpsert, scheduleFireBitmapsDeleteAll                                                                                                                                                    string
	startKeyLock, startKeyTryLock, startKeyInsert, startKeyUpdate, startKeyDelete, startKeyOfWaitingRun                                                                                                                                 string
	startKeysDue, startKeysWithReleasableStart, startKeyRunStates, startKeyReleaseRun                                                                                                                                                   string
	repairFence, repairRunsLock, repairRunStates, repairOldGenerationInsert, repairStepsMoveToGeneration, repairKeptStepsCopy, repairNewStepsInsert                                                                                     string
	repairPauseExtend, repairPausesExpired, repairPauseDelete                                                                                                                                                                           string
	runHoldForDrift, runsHeldForDrift, claimRunHeldForDrift, divergencesOfRun, divergencesDeleteObsolete, historiesOfRuns                                                                                                               string
	repairChildrenMoveToGeneration, repairSignalsMarkUnreceived, repairBeginNextGeneration, supersededGenerations, generationsByArchiveID, eventInsert                                                                                  string
	citusHomeNode, workerVersionRecord, workflowVersions, versionsDeleteOld                                                                                                                                                             string
	retentionTreeLock, retentionTreeRead, retentionRunsDelete, retentionEndedRootsPage, retentionGenerationsToDelete, retentionEventsDelete                                                                                             string
}

func loadStatements(schema string) statements {
	text := func(name string) string { return statementText(name, schema) }
	return statements{
		repairFence:                       text("repair_fence.sql"),
		repairPauseExtend:                 text("repair_pause_extend.sql"),
		repairPausesExpired:               text("repair_pauses_expired.sql"),
		repairPauseDelete:                 text("repair_pause_delete.sql"),
		repairRunsLock:                    text("repair_runs_lock.sql"),
		repairRunStates:                   text("repair_run_states_read.sql"),
		repairOldGenerationInsert:         text("repair_old_generation_insert.sql"),
		repairStepsMoveToGeneration:       text("repair_steps_move_to_generation.sql"),
		repairKeptStepsCopy:               text("repair_kept_steps_copy.sql"),
		repairNewStepsInsert:              text("repair_new_steps_insert.sql"),
		repairChildrenMoveToGeneration:    text("repair_children_move_to_generation.sql"),
		repairSignalsMarkUnreceived:       text("repair_signals_mark_unreceived.sql"),
		repairBeginNextGeneration:         text("repair_begin_next_generation.sql"),
		eventInsert:                       text("event_insert.sql"),
		generationsByArchiveID:            text("generations_by_archive_id.sql"),
		supersededGenerations:             text("superseded_generations.sql"),
		retentionEndedRootsPage:           text("retention_ended_roots_page.sql"),
		retentionGenerationsToDelete:      text("retention_generations_to_delete.sql"),
		retentionEventsDelete:             text("retention_events_delete.sql"),
		retentionTreeLock:                 text("retention_tree_lock.sql"),
		retentionTreeRead:                 text("retention_tree_read.sql"),
		retentionRunsDelete:               text("retention_runs_delete.sql"),
		runHoldForDrift:                   text("run_hold_for_drift.sql"),
		runsHeldForDrift:                  text("runs_held_for_drift.sql"),
		historiesOfRuns:                   text("histories_of_runs.sql"),
		claimRunHeldForDrift:              text("claim_run_held_for_drift.sql"),
		divergencesOfRun:                  text("divergences_of_run.sql"),
		divergencesDeleteObsolete:         text("divergences_delete_obsolete.sql"),
		setEngineSessionSettings:          text("set_engine_session_settings.sql"),
		runsLockForBatch:                  text("runs_lock_for_batch.sql"),
		runInsert:                         text("run_insert.sql"),
		runInsertGeneratedIds:             text("run_insert_generated_ids.sql"),
		runInsertGeneratedID:              text("run_insert_generated_id.sql"),
		runInsertOne:                      text("run_insert_one.sql"),
		runInsertAny:                      text("run_insert_any.sql"),
		statesOfParents:                   text("states_of_parents.sql"),
		signalReceive:                     text("signal_receive.sql"),
		signalInsert:                      text("signal_insert.sql"),
		signalInsertWithEvent:             text("signal_insert_with_event.sql"),
		signalNotStoredReasons:            text("signal_not_stored_reasons.sql"),
		signalsUnreceivedCount:            text("signals_unreceived_count.sql"),
		runWake:                           text("run_wake.sql"),
		childEndsCountAndWakeParents:      text("child_ends_count_and_wake_parents.sql"),
		childEndsSetAwaitedCount:          text("child_ends_set_awaited_count.sql"),
		controlRunTreeLock:                text("control_run_tree_lock.sql"),
		controlRunTreeRead:                text("control_run_tree_read.sql"),
		controlShiftTimers:                text("control_shift_timers.sql"),
		controlApply:                      text("control_apply.sql"),
		runDeadlineSet:                    text("run_deadline_set.sql"),
		ownedRunChanges:                   text("owned_run_changes.sql"),
		stepsOpen:                         text("steps_open.sql"),
		recordedChoices:                   text("recorded_choices.sql"),
		runLastLeaseLoss:                  text("run_last_lease_loss.sql"),
		mapProgress:                       text("map_progress.sql"),
		runTags:                           text("run_tags.sql"),
		runFirstInput:                     text("run_first_input.sql"),
		tagSet:                            text("tag_set.sql"),
		runsList:                          text("runs_list.sql"),
		runsListByTag:                     text("runs_list_by_tag.sql"),
		runsListByTagKey:                  text("runs_list_by_tag_key.sql"),
		runsListByRunNamePrefix:           text("runs_list_by_run_name_prefix.sql"),
		runsListByFailure:                 text("runs_list_by_failure.sql"),
		runsSearch:                        text("runs_search.sql"),
		runsListByStatus:                  text("runs_list_by_status.sql"),
		runsListByOwner:                   text("runs_list_by_owner.sql"),
		runsListHeld:                      text("runs_list_held.sql"),
		failureGroups:                     text("failure_groups.sql"),
		statusCounts:                      text("status_counts.sql"),
		eventNewest:                       text("event_newest.sql"),
		runTree:                           text("run_tree.sql"),
		runTreeCounts:                     text("run_tree_counts.sql"),
		eventsPage:                        text("events_page.sql"),
		eventsPageBefore:                  text("events_page_before.sql"),
		eventCursorValid:                  text("event_cursor_valid.sql"),
		runByName:                         text("run_by_name.sql"),
		stepInsert:                        text("step_insert.sql"),
		stepInsertOne:                     text("step_insert_one.sql"),
		stepInsertIfAbsent:                text("step_insert_if_absent.sql"),
		stepUpdate:                        text("step_update.sql"),
		stepNotWrittenReasons:             text("step_not_written_reasons.sql"),
		runFinish:                         text("run_finish.sql"),
		runFinishOne:                      text("run_finish_one.sql"),
		runEndOwnership:                   text("run_end_ownership.sql"),
		runHoldAfterRejectedWrite:         text("run_hold_after_rejected_write.sql"),
		setLockTimeout:                    text("set_lock_timeout.sql"),
		setTransactionTimeouts:            text("set_transaction_timeouts.sql"),
		setAsyncTransactionTimeouts:       text("set_async_transaction_timeouts.sql"),
		runState:                          text("run_state.sql"),
		notify:                            text("notify.sql"),
		claimRuns:                         text("claim_runs.sql"),
		workerVersionRecord:               text("worker_version_record.sql"),
		workflowVersions:                  text("workflow_versions.sql"),
		versionsDeleteOld:                 text("versions_delete_old.sql"),
		claimHistories:                    text("claim_histories.sql"),
		historyPart:                       text("history_part.sql"),
		leasesOfClaim:                     text("leases_of_claim.sql"),
		claimCheckLanesAndVersions:        text("claim_check_lanes_and_versions.sql"),
		lanesFindUnknown:                  text("lanes_find_unknown.sql"),
		writersInFlight:                   text("writers_in_flight.sql"),
		sharedWriterLockSession:           text("shared_writer_lock_session.sql"),
		walPosition:                       text("wal_position.sql"),
		citusHomeNode:                     text("citus_home_node.sql"),
		ownedRunsCheckpoints:              text("owned_runs_checkpoints.sql"),
		sharedWriterLockTx:                text("shared_writer_lock_tx.sql"),
		workerUpsert:                      text("worker_upsert.sql"),
		workerSetQuiet:                    text("worker_set_quiet.sql"),
		leaseExtend:                       text("lease_extend.sql"),
		leasesLost:                        text("leases_lost.sql"),
		leasesOfDeadWorkerExpire:          text("leases_of_dead_worker_expire.sql"),
		workerDelete:                      text("worker_delete.sql"),
		workers:                           text("workers.sql"),
		lanesOverdue:                      text("lanes_overdue.sql"),
		workflowsWithLiveWorker:           text("workflows_with_live_worker.sql"),
		runByID:                           text("run_by_id.sql"),
		runStatuses:                       text("run_statuses.sql"),
		history:                           text("history.sql"),
		historyWithoutPayloads:            text("history_without_payloads.sql"),
		checkpointsByName:                 text("checkpoints_by_name.sql"),
		runFingerprints:                   text("run_fingerprints.sql"),
		now:                               text("now.sql"),
		listen:                            text("listen.sql"),
		listenSessionSettings:             text("listen_session_settings.sql"),
		presenceLock:                      text("presence_lock.sql"),
		presenceUnlock:                    text("presence_unlock.sql"),
		unlisten:                          text("unlisten.sql"),
		heldLocks:                         text("presence_held_locks.sql"),
		presenceLockRecord:                text("presence_lock_record.sql"),
		presenceDeadWorkers:               text("presence_dead_workers.sql"),
		txStepCheckpoint:                  text("tx_step_checkpoint.sql"),
		txStepRunLock:                     text("tx_step_run_lock.sql"),
		waitForStandbys:                   text("wait_for_standbys.sql"),
		migrationLock:                     text("migration_lock.sql"),
		migrationNoTimeouts:               text("migration_no_timeouts.sql"),
		migrationPreconditions:            text("migration_preconditions.sql"),
		migrationVersion:                  text("migration_version.sql"),
		untrustedOwners:                   text("untrusted_owners.sql"),
		userTxSyncCommit:                  text("user_tx_sync_commit.sql"),
		limitKeyLock:                      text("limit_key_lock.sql"),
		permitReturn:                      text("permit_return.sql"),
		permitLimitBlockAfterFailover:     text("permit_limit_block_after_failover.sql"),
		permitLimitBounds:                 text("permit_limit_bounds.sql"),
		permitsOfLimitKeys:                text("permits_of_limit_keys.sql"),
		permitRequestingStepsRead:         text("permit_requesting_steps_read.sql"),
		permitDelete:                      text("permit_delete.sql"),
		permitUpsert:                      text("permit_upsert.sql"),
		permitOffer:                       text("permit_offer.sql"),
		limitKeyRecordGrant:               text("limit_key_record_grant.sql"),
		limitKeysDeleteUnused:             text("limit_keys_delete_unused.sql"),
		limitKeysWithWaiters:              text("limit_keys_with_waiters.sql"),
		permitsOfRun:                      text("permits_of_run.sql"),
		limitDeclare:                      text("limit_declare.sql"),
		limitSetBounds:                    text("limit_set_bounds.sql"),
		limitDelete:                       text("limit_delete.sql"),
		limitResetToDeclared:              text("limit_reset_to_declared.sql"),
		limits:                            text("limits.sql"),
		limitUsage:                        text("limit_usage.sql"),
		admissionQueueLock:                text("admission_queue_lock.sql"),
		admissionHasWork:                  text("admission_has_work.sql"),
		admissionRunsLock:                 text("admission_runs_lock.sql"),
		admissionIdleRunsLock:             text("admission_idle_runs_lock.sql"),
		admissionRunsWithRecordedEnd:      text("admission_runs_with_recorded_end.sql"),
		admissionUnclaimedRunsCount:       text("admission_unclaimed_runs_count.sql"),
		admissionUnclaimedRunsByGroupKey:  text("admission_unclaimed_runs_by_group_key.sql"),
		admissionRunsInLineLock:           text("admission_runs_in_line_lock.sql"),
		admissionGroupKeysDueForCheck:     text("admission_group_keys_due_for_check.sql"),
		admissionGroupKeysRead:            text("admission_group_keys_read.sql"),
		admissionRunsBehindGroupKeyLock:   text("admission_runs_behind_group_key_lock.sql"),
		admissionRunUpdate:                text("admission_run_update.sql"),
		admissionPlaceUpsert:              text("admission_place_upsert.sql"),
		admissionGroupKeyCountsUpsert:     text("admission_group_key_counts_upsert.sql"),
		admissionGroupKeyDelete:           text("admission_group_key_delete.sql"),
		admissionEndedPlaceDelete:         text("admission_ended_place_delete.sql"),
		admissionGroupKeysMarkAllForCheck: text("admission_group_keys_mark_all_for_check.sql"),
		admissionQueueCountsUpdate:        text("admission_queue_counts_update.sql"),
		admissionQueueDeleteIfEmpty:       text("admission_queue_delete_if_empty.sql"),
		queuesWithoutCounts:               text("queues_without_counts.sql"),
		queueDeclare:                      text("queue_declare.sql"),
		queueSetSettings:                  text("queue_set_settings.sql"),
		queuePause:                        text("queue_pause.sql"),
		queueResume:                       text("queue_resume.sql"),
		queueMarkDeleted:                  text("queue_mark_deleted.sql"),
		queueResetToDeclared:              text("queue_reset_to_declared.sql"),
		queuesWithCounts:                  text("queues_with_counts.sql"),
		queueBusiestGroupKeys:             text("queue_busiest_group_keys.sql"),
		queueDepth:                        text("queue_depth.sql"),
		queuePlaceOfRun:                   text("queue_place_of_run.sql"),
		runInsertWithPlace:                text("run_insert_with_place.sql"),
		runsListByGroupKey:                text("runs_list_by_group_key.sql"),
		runsListByID:                      text("runs_list_by_id.sql"),
		runsListByParent:                  text("runs_list_by_parent.sql"),
		startByDeadlineMarkClear:          text("start_by_deadline_mark_clear.sql"),
		startKeyLock:                      text("start_key_lock.sql"),
		startKeyOfWaitingRun:              text("start_key_of_waiting_run.sql"),
		startKeyTryLock:                   text("start_key_try_lock.sql"),
		startKeyInsert:                    text("start_key_insert.sql"),
		startKeyUpdate:                    text("start_key_update.sql"),
		startKeyDelete:                    text("start_key_delete.sql"),
		startKeysDue:                      text("start_keys_due.sql"),
		startKeysWithReleasableStart:      text("start_keys_with_releasable_start.sql"),
		startKeyRunStates:                 text("start_key_run_states.sql"),
		startKeyReleaseRun:                text("start_key_release_run.sql"),
		txStepBegin:                       text("tx_step_begin.sql"),
		txStepCheckBegun:                  text("tx_step_check_begun.sql"),
		userTxSetSettings:                 text("user_tx_set_settings.sql"),
		tokenSigningKey:                   text("token_signing_key.sql"),
		tokenSigningKeyInsert:             text("token_signing_key_insert.sql"),
		userTxRestoreSettings:             text("user_tx_restore_settings.sql"),
		schedulesDue:                      text("schedules_due.sql"),
		schedulesWaitingLastRunEnded:      text("schedules_waiting_last_run_ended.sql"),
		scheduleLock:                      text("schedule_lock.sql"),
		scheduleTryLock:                   text("schedule_try_lock.sql"),
		scheduleLastRunState:              text("schedule_last_run_state.sql"),
		scheduleByName:                    text("schedule_by_name.sql"),
		schedulesPage:                     text("schedules_page.sql"),
		scheduleInsert:                    text("schedule_insert.sql"),
		scheduleUpdate:                    text("schedule_update.sql"),
		scheduleDelete:                    text("schedule_delete.sql"),
		scheduleFireUpsert:                text("schedule_fire_upsert.sql"),
		scheduleFiresByTime:               text("schedule_fires_by_time.sql"),
		scheduleFiresLatest:               text("schedule_fires_latest.sql"),
		scheduleFiresToCompact:            text("schedule_fires_to_compact.sql"),
		scheduleFireDeleteCompacted:       text("schedule_fire_delete_compacted.sql"),
		scheduleFiresDeleteAll:            text("schedule_fires_delete_all.sql"),
		scheduleFireBitmapsRead:           text("schedule_fire_bitmaps_read.sql"),
		scheduleFireBitmapsUpsert:         text("schedule_fire_bitmaps_upsert.sql"),
		scheduleFireBitmapsDeleteAll:      text("schedule_fire_bitmaps_delete_all.sql"),
		queueMoveRunQueueRead:             text("queue_move_run_queue_read.sql"),
		queueMoveQueueLock:                text("queue_move_queue_lock.sql"),
		queueMoveRunLock:                  text("queue_move_run_lock.sql"),
		queueMoveRunRead:                  text("queue_move_run_read.sql"),
		queueMoveGroupKeyRead:             text("queue_move_group_key_read.sql"),
		queueMoveRunUpdate:                text("queue_move_run_update.sql"),
		queueMovePlaceWrite:               text("queue_move_place_write.sql"),
	}
}

// statementText returns the text of one file without its comments, which modes without prepared statements
// would send each time.
func statementText(name, schema string) string {
	text, err := files.ReadFile("sql/" + name)
	if err != nil {
		panic("postgres: embedded file " + name + " is missing: " + err.Error())
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		code, _, _ := strings.Cut(line, "--")
		if code = strings.TrimRight(code, " \n"); code != "" {
			b.WriteString(code)
			b.WriteByte('\n')
		}
	}
	return replaceSchemaName(strings.TrimSuffix(strings.TrimSpace(b.String()), ";"), schema)
}

// replaceSchemaName replaces the schema name durable by another one.
func replaceSchemaName(text, schema string) string {
	quoted := pgx.Identifier{schema}.Sanitize()
	return strings.NewReplacer(
		"durable.", quoted+".",
		"SCHEMA durable", "SCHEMA "+quoted,
		`"durable_wake"`, pgx.Identifier{notifyChannel(schema)}.Sanitize(),
	).Replace(text)
}

// notifyChannel returns the name of the channel on which the processes that share a schema notify each other.
func notifyChannel(schema string) string { return schema + "_wake" }
