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
	engineSettings                                                                                                                                                      string
	runsLockForBatch, runInsert, runInsertOne, runInsertGeneratedIds, runInsertGeneratedID, runInsertAny, runByName, statesOfParents                                    string
	stepInsert, stepInsertOne, stepInsertIfAbsent, stepUpdate, stepNotWrittenReasons                                                                                    string
	signalReceive, signalInsert, signalInsertByPerson, signalNotStoredReasons, signalsUnreceivedCount                                                                   string
	runFinish, runFinishOne, runEndOwnership, runHoldAfterRejectedWrite, runState, runWake, notify, setLockTimeout, setTransactionTimeouts, setAsyncTransactionTimeouts string
	controlRunTreeLock, controlRunTreeRead, controlShiftTimers, controlApply, runDeadlineSet                                                                            string
	claimRuns, claimPrepare, lanesFindUnknown, claimHistories, historyPart, writersInFlight, leasesOfClaim                                                              string
	writerMarkSession, writerMarkTx, walPosition, heldRunsCheckpoints, runCountChildEnds, childEndsAwait                                                                string
	workerUpsert, workerQuiet, leaseExtend, leasesLost                                                                                                                  string
	leaseExpire, workerDelete, workers, lanesOverdue, workflowsWithLiveWorker                                                                                           string
	runByID, runStatuses, history, historyOutline, checkpoints, changeMarks, now, ownedRunChanges                                                                       string
	stepsOpen, recordedChoices, runLastLeaseLoss, mapProgress, runTags, tagSet                                                                                          string
	runsList, runsListByTag, runsListByTagKey, runsListByRunNamePrefix, runTree, runTreeCounts, eventsPage, eventsPageBefore, eventCursorValid                          string
	listenSessionSettings, listen, presenceLock, presenceUnlock, unlisten, heldLocks, presenceRecord, presenceDeadWorkers                                               string
	txStepCheckpoint, txStepRunLock, waitForStandbys                                                                                                                    string
	migrationLock, migrationPreconditions, migrationVersion, migrationNoTimeouts                                                                                        string
	limitKeyLock, permitReturn, permitLimitBlockAfterFailover, permitLimitBounds, permitsRead, permitRequestsRead                                                       string
	permitDelete, permitUpsert, permitOffer, limitKeyRecordGrant, limitKeysDeleteUnused                                                                                 string
	limitKeysWithWaiters, permitsOfRun, limitDeclare, limitSet, limitDelete, limitReset                                                                                 string
	limits, limitUsage, queueRows, queueDeclare, queueSet, queuePause                                                                                                   string
	queueResume, queueDelete, queueReset, queues, queueKeys, queueDepth, queuePlaceOfRun                                                                                string
	admitQueueLock, admitHasWork, admitRunsLock, admitRunsWithRecordedEnd, admitUnclaimedCount, admitUnclaimedByKey, admitRunsInLineLock, admitKeysToCheck              string
	admitKeysRead, admitRunsBehindKeyLock, admitRunUpdate, admitPlaceUpsert, admitKeyUpsert                                                                             string
	admitKeyDelete, admitKeysMarkAllToCheck, admitQueueUpdate, admitQueueDelete, admitEndedPlaceDelete                                                                  string
	queueMoveRunQueueRead, queueMoveQueueLock, queueMoveRunLock, queueMoveRunRead, queueMovePlaceKey, queueMoveRunUpdate, queueMovePlaceWrite                           string
	runsSearch, runsListByFailure, runsListFailed, runsListPaused, runsListByOwner, runsListHeld, failureGroups, statusCounts, eventNewest                              string
	runInsertWithPlace, startByDeadlineMarkClear, runsListByGroupKey, runsListByID, runsListByParent                                                                    string
	txStepBegin, txStepCheckBegun, untrustedOwners, userTxSyncCommit, userTxSettings, userTxRestoreSettings, tokenSigningKey, tokenSigningKeyInsert                     string
	schedulesDue, schedulesWaitingLastRunEnded, scheduleLock, scheduleTryLock, scheduleLastRunState                                                                     string
	scheduleByName, schedulesPage, scheduleInsert, scheduleUpdate, scheduleDelete                                                                                       string
	scheduleFireUpsert, scheduleFiresByTime, scheduleFiresLatest, scheduleFiresOldest, scheduleFireDelete, scheduleFiresDeleteAll                                       string
	scheduleFireBitmapsRead, scheduleFireBitmapsUpsert, scheduleFireBitmapsDeleteAll                                                                                    string
	startFoldKeyLock, startFoldKeyTryLock, startFoldKeyInsert, startFoldKeyUpdate, startFoldKeyDelete, startFoldKeyOfWaiting                                            string
	startFoldKeysDue, startFoldKeysRunEnded, startFoldRunStates, startFoldRunRelease                                                                                    string
	repairFence, repairLock, repairStates, repairGenerationInsert, repairStepsArchive, repairStepsKeep, repairStepsWrite                                                string
	repairPauseExtend, repairPausesExpired, repairPauseDelete                                                                                                           string
	runHoldForDrift, driftHeldRuns, heldRunClaim, divergences, divergencesDelete, historiesOfRuns                                                                       string
	repairChildrenDetach, repairSignalsRelease, repairRun, generations, eventInsert                                                                                     string
	citusHome, versionRecord, versions, versionsDeleteOld                                                                                                               string
	retentionTreeLock, retentionTreeRead, retentionDelete, retentionPage, retentionGenerations, retentionEventsDelete                                                   string
}

func loadStatements(schema string) statements {
	text := func(name string) string { return statementText(name, schema) }
	return statements{
		repairFence:                   text("repair_fence.sql"),
		repairPauseExtend:             text("repair_pause_extend.sql"),
		repairPausesExpired:           text("repair_pauses_expired.sql"),
		repairPauseDelete:             text("repair_pause_delete.sql"),
		repairLock:                    text("repair_lock.sql"),
		repairStates:                  text("repair_states.sql"),
		repairGenerationInsert:        text("repair_generation_insert.sql"),
		repairStepsArchive:            text("repair_steps_archive.sql"),
		repairStepsKeep:               text("repair_steps_keep.sql"),
		repairStepsWrite:              text("repair_steps_write.sql"),
		repairChildrenDetach:          text("repair_children_detach.sql"),
		repairSignalsRelease:          text("repair_signals_release.sql"),
		repairRun:                     text("repair_run.sql"),
		eventInsert:                   text("event_insert.sql"),
		generations:                   text("generations.sql"),
		retentionPage:                 text("retention_page.sql"),
		retentionGenerations:          text("retention_generations.sql"),
		retentionEventsDelete:         text("retention_events_delete.sql"),
		retentionTreeLock:             text("retention_tree_lock.sql"),
		retentionTreeRead:             text("retention_tree_read.sql"),
		retentionDelete:               text("retention_delete.sql"),
		runHoldForDrift:               text("run_hold_for_drift.sql"),
		driftHeldRuns:                 text("drift_held_runs.sql"),
		historiesOfRuns:               text("histories_of_runs.sql"),
		heldRunClaim:                  text("held_run_claim.sql"),
		divergences:                   text("divergences.sql"),
		divergencesDelete:             text("divergences_delete.sql"),
		engineSettings:                text("engine_settings.sql"),
		runsLockForBatch:              text("runs_lock_for_batch.sql"),
		runInsert:                     text("run_insert.sql"),
		runInsertGeneratedIds:         text("run_insert_generated_ids.sql"),
		runInsertGeneratedID:          text("run_insert_generated_id.sql"),
		runInsertOne:                  text("run_insert_one.sql"),
		runInsertAny:                  text("run_insert_any.sql"),
		statesOfParents:               text("states_of_parents.sql"),
		signalReceive:                 text("signal_receive.sql"),
		signalInsert:                  text("signal_insert.sql"),
		signalInsertByPerson:          text("signal_insert_by_person.sql"),
		signalNotStoredReasons:        text("signal_not_stored_reasons.sql"),
		signalsUnreceivedCount:        text("signals_unreceived_count.sql"),
		runWake:                       text("run_wake.sql"),
		runCountChildEnds:             text("run_count_child_ends.sql"),
		childEndsAwait:                text("child_ends_await.sql"),
		controlRunTreeLock:            text("control_run_tree_lock.sql"),
		controlRunTreeRead:            text("control_run_tree_read.sql"),
		controlShiftTimers:            text("control_shift_timers.sql"),
		controlApply:                  text("control_apply.sql"),
		runDeadlineSet:                text("run_deadline_set.sql"),
		ownedRunChanges:               text("owned_run_changes.sql"),
		stepsOpen:                     text("steps_open.sql"),
		recordedChoices:               text("recorded_choices.sql"),
		runLastLeaseLoss:              text("run_last_lease_loss.sql"),
		mapProgress:                   text("map_progress.sql"),
		runTags:                       text("run_tags.sql"),
		tagSet:                        text("tag_set.sql"),
		runsList:                      text("runs_list.sql"),
		runsListByTag:                 text("runs_list_by_tag.sql"),
		runsListByTagKey:              text("runs_list_by_tag_key.sql"),
		runsListByRunNamePrefix:       text("runs_list_by_run_name_prefix.sql"),
		runsListByFailure:             text("runs_list_by_failure.sql"),
		runsSearch:                    text("runs_search.sql"),
		runsListFailed:                text("runs_list_failed.sql"),
		runsListPaused:                text("runs_list_paused.sql"),
		runsListByOwner:               text("runs_list_by_owner.sql"),
		runsListHeld:                  text("runs_list_held.sql"),
		failureGroups:                 text("failure_groups.sql"),
		statusCounts:                  text("status_counts.sql"),
		eventNewest:                   text("event_newest.sql"),
		runTree:                       text("run_tree.sql"),
		runTreeCounts:                 text("run_tree_counts.sql"),
		eventsPage:                    text("events_page.sql"),
		eventsPageBefore:              text("events_page_before.sql"),
		eventCursorValid:              text("event_cursor_valid.sql"),
		runByName:                     text("run_by_name.sql"),
		stepInsert:                    text("step_insert.sql"),
		stepInsertOne:                 text("step_insert_one.sql"),
		stepInsertIfAbsent:            text("step_insert_if_absent.sql"),
		stepUpdate:                    text("step_update.sql"),
		stepNotWrittenReasons:         text("step_not_written_reasons.sql"),
		runFinish:                     text("run_finish.sql"),
		runFinishOne:                  text("run_finish_one.sql"),
		runEndOwnership:               text("run_end_ownership.sql"),
		runHoldAfterRejectedWrite:     text("run_hold_after_rejected_write.sql"),
		setLockTimeout:                text("set_lock_timeout.sql"),
		setTransactionTimeouts:        text("set_transaction_timeouts.sql"),
		setAsyncTransactionTimeouts:   text("set_async_transaction_timeouts.sql"),
		runState:                      text("run_state.sql"),
		notify:                        text("notify.sql"),
		claimRuns:                     text("claim_runs.sql"),
		versionRecord:                 text("version_record.sql"),
		versions:                      text("versions.sql"),
		versionsDeleteOld:             text("versions_delete_old.sql"),
		claimHistories:                text("claim_histories.sql"),
		historyPart:                   text("history_part.sql"),
		leasesOfClaim:                 text("leases_of_claim.sql"),
		claimPrepare:                  text("claim_prepare.sql"),
		lanesFindUnknown:              text("lanes_find_unknown.sql"),
		writersInFlight:               text("writers_in_flight.sql"),
		writerMarkSession:             text("writer_mark_session.sql"),
		walPosition:                   text("wal_position.sql"),
		citusHome:                     text("citus_home.sql"),
		heldRunsCheckpoints:           text("held_runs_checkpoints.sql"),
		writerMarkTx:                  text("writer_mark_tx.sql"),
		workerUpsert:                  text("worker_upsert.sql"),
		workerQuiet:                   text("worker_quiet.sql"),
		leaseExtend:                   text("lease_extend.sql"),
		leasesLost:                    text("leases_lost.sql"),
		leaseExpire:                   text("lease_expire.sql"),
		workerDelete:                  text("worker_delete.sql"),
		workers:                       text("workers.sql"),
		lanesOverdue:                  text("lanes_overdue.sql"),
		workflowsWithLiveWorker:       text("workflows_with_live_worker.sql"),
		runByID:                       text("run_by_id.sql"),
		runStatuses:                   text("run_statuses.sql"),
		history:                       text("history.sql"),
		historyOutline:                text("history_outline.sql"),
		checkpoints:                   text("checkpoints.sql"),
		changeMarks:                   text("change_marks.sql"),
		now:                           text("now.sql"),
		listen:                        text("listen.sql"),
		listenSessionSettings:         text("listen_session_settings.sql"),
		presenceLock:                  text("presence_lock.sql"),
		presenceUnlock:                text("presence_unlock.sql"),
		unlisten:                      text("unlisten.sql"),
		heldLocks:                     text("presence_held_locks.sql"),
		presenceRecord:                text("presence_record.sql"),
		presenceDeadWorkers:           text("presence_dead_workers.sql"),
		txStepCheckpoint:              text("tx_step_checkpoint.sql"),
		txStepRunLock:                 text("tx_step_run_lock.sql"),
		waitForStandbys:               text("wait_for_standbys.sql"),
		migrationLock:                 text("migration_lock.sql"),
		migrationNoTimeouts:           text("migration_no_timeouts.sql"),
		migrationPreconditions:        text("migration_preconditions.sql"),
		migrationVersion:              text("migration_version.sql"),
		untrustedOwners:               text("untrusted_owners.sql"),
		userTxSyncCommit:              text("user_tx_sync_commit.sql"),
		limitKeyLock:                  text("limit_key_lock.sql"),
		permitReturn:                  text("permit_return.sql"),
		permitLimitBlockAfterFailover: text("permit_limit_block_after_failover.sql"),
		permitLimitBounds:             text("permit_limit_bounds.sql"),
		permitsRead:                   text("permits_read.sql"),
		permitRequestsRead:            text("permit_requests_read.sql"),
		permitDelete:                  text("permit_delete.sql"),
		permitUpsert:                  text("permit_upsert.sql"),
		permitOffer:                   text("permit_offer.sql"),
		limitKeyRecordGrant:           text("limit_key_record_grant.sql"),
		limitKeysDeleteUnused:         text("limit_keys_delete_unused.sql"),
		limitKeysWithWaiters:          text("limit_keys_with_waiters.sql"),
		permitsOfRun:                  text("permits_of_run.sql"),
		limitDeclare:                  text("limit_declare.sql"),
		limitSet:                      text("limit_set.sql"),
		limitDelete:                   text("limit_delete.sql"),
		limitReset:                    text("limit_reset.sql"),
		limits:                        text("limits.sql"),
		limitUsage:                    text("limit_usage.sql"),
		admitQueueLock:                text("admit_queue_lock.sql"),
		admitHasWork:                  text("admit_has_work.sql"),
		admitRunsLock:                 text("admit_runs_lock.sql"),
		admitRunsWithRecordedEnd:      text("admit_runs_with_recorded_end.sql"),
		admitUnclaimedCount:           text("admit_unclaimed_count.sql"),
		admitUnclaimedByKey:           text("admit_unclaimed_by_key.sql"),
		admitRunsInLineLock:           text("admit_runs_in_line_lock.sql"),
		admitKeysToCheck:              text("admit_keys_to_check.sql"),
		admitKeysRead:                 text("admit_keys_read.sql"),
		admitRunsBehindKeyLock:        text("admit_runs_behind_key_lock.sql"),
		admitRunUpdate:                text("admit_run_update.sql"),
		admitPlaceUpsert:              text("admit_place_upsert.sql"),
		admitKeyUpsert:                text("admit_key_upsert.sql"),
		admitKeyDelete:                text("admit_key_delete.sql"),
		admitEndedPlaceDelete:         text("admit_ended_place_delete.sql"),
		admitKeysMarkAllToCheck:       text("admit_keys_mark_all_to_check.sql"),
		admitQueueUpdate:              text("admit_queue_update.sql"),
		admitQueueDelete:              text("admit_queue_delete.sql"),
		queueRows:                     text("queue_rows.sql"),
		queueDeclare:                  text("queue_declare.sql"),
		queueSet:                      text("queue_set.sql"),
		queuePause:                    text("queue_pause.sql"),
		queueResume:                   text("queue_resume.sql"),
		queueDelete:                   text("queue_delete.sql"),
		queueReset:                    text("queue_reset.sql"),
		queues:                        text("queues.sql"),
		queueKeys:                     text("queue_keys.sql"),
		queueDepth:                    text("queue_depth.sql"),
		queuePlaceOfRun:               text("queue_place_of_run.sql"),
		runInsertWithPlace:            text("run_insert_with_place.sql"),
		runsListByGroupKey:            text("runs_list_by_group_key.sql"),
		runsListByID:                  text("runs_list_by_id.sql"),
		runsListByParent:              text("runs_list_by_parent.sql"),
		startByDeadlineMarkClear:      text("start_by_deadline_mark_clear.sql"),
		startFoldKeyLock:              text("start_fold_key_lock.sql"),
		startFoldKeyOfWaiting:         text("start_fold_key_of_waiting.sql"),
		startFoldKeyTryLock:           text("start_fold_key_try_lock.sql"),
		startFoldKeyInsert:            text("start_fold_key_insert.sql"),
		startFoldKeyUpdate:            text("start_fold_key_update.sql"),
		startFoldKeyDelete:            text("start_fold_key_delete.sql"),
		startFoldKeysDue:              text("start_fold_keys_due.sql"),
		startFoldKeysRunEnded:         text("start_fold_keys_run_ended.sql"),
		startFoldRunStates:            text("start_fold_run_states.sql"),
		startFoldRunRelease:           text("start_fold_run_release.sql"),
		txStepBegin:                   text("tx_step_begin.sql"),
		txStepCheckBegun:              text("tx_step_check_begun.sql"),
		userTxSettings:                text("user_tx_settings.sql"),
		tokenSigningKey:               text("token_signing_key.sql"),
		tokenSigningKeyInsert:         text("token_signing_key_insert.sql"),
		userTxRestoreSettings:         text("user_tx_restore_settings.sql"),
		schedulesDue:                  text("schedules_due.sql"),
		schedulesWaitingLastRunEnded:  text("schedules_waiting_last_run_ended.sql"),
		scheduleLock:                  text("schedule_lock.sql"),
		scheduleTryLock:               text("schedule_try_lock.sql"),
		scheduleLastRunState:          text("schedule_last_run_state.sql"),
		scheduleByName:                text("schedule_by_name.sql"),
		schedulesPage:                 text("schedules_page.sql"),
		scheduleInsert:                text("schedule_insert.sql"),
		scheduleUpdate:                text("schedule_update.sql"),
		scheduleDelete:                text("schedule_delete.sql"),
		scheduleFireUpsert:            text("schedule_fire_upsert.sql"),
		scheduleFiresByTime:           text("schedule_fires_by_time.sql"),
		scheduleFiresLatest:           text("schedule_fires_latest.sql"),
		scheduleFiresOldest:           text("schedule_fires_oldest.sql"),
		scheduleFireDelete:            text("schedule_fire_delete.sql"),
		scheduleFiresDeleteAll:        text("schedule_fires_delete_all.sql"),
		scheduleFireBitmapsRead:       text("schedule_fire_bitmaps_read.sql"),
		scheduleFireBitmapsUpsert:     text("schedule_fire_bitmaps_upsert.sql"),
		scheduleFireBitmapsDeleteAll:  text("schedule_fire_bitmaps_delete_all.sql"),
		queueMoveRunQueueRead:         text("queue_move_run_queue_read.sql"),
		queueMoveQueueLock:            text("queue_move_queue_lock.sql"),
		queueMoveRunLock:              text("queue_move_run_lock.sql"),
		queueMoveRunRead:              text("queue_move_run_read.sql"),
		queueMovePlaceKey:             text("queue_move_place_key.sql"),
		queueMoveRunUpdate:            text("queue_move_run_update.sql"),
		queueMovePlaceWrite:           text("queue_move_place_write.sql"),
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
	return replaceSchema(strings.TrimSuffix(strings.TrimSpace(b.String()), ";"), schema)
}

// replaceSchema replaces the schema name durable by another one.
func replaceSchema(text, schema string) string {
	quoted := pgx.Identifier{schema}.Sanitize()
	return strings.NewReplacer(
		"durable.", quoted+".",
		"SCHEMA durable", "SCHEMA "+quoted,
		`"durable_wake"`, pgx.Identifier{notifyChannel(schema)}.Sanitize(),
	).Replace(text)
}

// notifyChannel returns the name of the channel on which the processes that share a schema notify each other.
func notifyChannel(schema string) string { return schema + "_wake" }
