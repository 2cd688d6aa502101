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
	engineSettings                                                                                                            string
	runsLock, runInsert, runInsertGenerated, runInsertAny, runByName, parentState                                             string
	stepInsert, stepInsertOne, stepInsertIfAbsent, stepUpdate, stepState                                                      string
	signalReceive, signalInsert, signalState, signalsUnreceived                                                               string
	runFinish, runEndOwnership, runHold, runState, runWake, notify, setLockTimeout, setTransactionTimeouts                    string
	controlTreeLock, controlTree, controlShiftTimers, controlApply, runDeadlineSet                                            string
	claimRuns, claimPrepare, lanesFindUnknown, claimHistories, historyPart, writersInFlight, claimedLeases                    string
	writerMarkSession, writerMarkTx, walPosition, heldRunsCheckpoints                                                         string
	workerUpsert, leaseExtend, leaseLost                                                                                      string
	leaseExpire, workerDelete, workers, lanesOverdue, workflowsExecuted                                                       string
	runByID, runStatuses, history, now, notifications                                                                         string
	stepsOpen, runChoices, runLastLeaseLoss, mapProgress, runTags, tagSet, runTreeOpenCalls                                   string
	runsList, runsListByTag, runsListByTagKey, runsListByNamePrefix, runTree, runTreeCounts, eventsPage, eventCursorValid     string
	listenSessionSettings, listen, presenceLock, presenceRecord, presenceDeadWorkers                                          string
	txCheckpoint, txCheckpointLock, waitForStandbys                                                                           string
	migrationLock, migrationExists, migrationVersion, migrationNoTimeouts                                                     string
	permitLineLock, permitReturn, permitLimitShut, permitLimitBounds, permitLinesRead, permitRequestsRead                     string
	permitDelete, permitUpsert, permitOffer, permitLineUpdateGranted                                                          string
	permitWaitingLines, permitsOfRun, limitDeclare, limitSet, limitDelete                                                     string
	limits, limitUse, queueRows, queueDeclare, queueSet, queuePause                                                           string
	queueResume, queueDelete, queues, queueKeys, queueDepth, placeOfRun                                                       string
	admitQueueLock, admitHasWork, admitRunsLock, admitUnclaimedCount, admitRunsInLine, admitKeysToCheck                       string
	admitKeysRead, admitRunsBehindKey, admitRunUpdate, admitPlaceUpsert, admitKeyUpsert                                       string
	admitKeyDelete, admitKeysCheckAll, admitQueueUpdate, admitQueueDelete, admitPlaceDelete                                   string
	requeueQueueOf, requeueQueueLock, requeueLock, requeueRead, requeueKey, requeueWrite, requeuePlaceWrite                   string
	runInsertWithPlace, startByMarkClear, runsListByGroupKey                                                                  string
	txBegin, txCheckBegun, untrustedOwners, userTxSyncCommit, userTxSettings, userTxRestoreSettings, tokenKey, tokenKeyInsert string
	schedulesDue, schedulesWaitingReady, scheduleLock, scheduleTryLock, scheduleLastRun                                       string
	scheduleByName, schedulesPage, scheduleInsert, scheduleUpdate, scheduleDelete                                             string
	fireUpsert, firesByTime, firesLatest, firesOldest, fireDelete, fireDeleteAll                                              string
	foldedFiresRead, foldedFiresUpsert, foldedFiresDeleteAll                                                                  string
	foldKeyLock, foldKeyTryLock, foldKeyInsert, foldKeyUpdate, foldKeyDelete                                                  string
	foldKeysDue, foldKeysRunEnded, foldRunStates, foldRunRelease                                                              string
}

func loadStatements(schema string) statements {
	text := func(name string) string { return statement(name, schema) }
	return statements{
		engineSettings:          text("engine_settings.sql"),
		runsLock:                text("runs_lock.sql"),
		runInsert:               text("run_insert.sql"),
		runInsertGenerated:      text("run_insert_generated.sql"),
		runInsertAny:            text("run_insert_any.sql"),
		parentState:             text("parent_state.sql"),
		signalReceive:           text("signal_receive.sql"),
		signalInsert:            text("signal_insert.sql"),
		signalState:             text("signal_state.sql"),
		signalsUnreceived:       text("signals_unreceived.sql"),
		runWake:                 text("run_wake.sql"),
		controlTreeLock:         text("control_tree_lock.sql"),
		controlTree:             text("control_tree.sql"),
		controlShiftTimers:      text("control_shift_timers.sql"),
		controlApply:            text("control_apply.sql"),
		runDeadlineSet:          text("run_deadline_set.sql"),
		notifications:           text("notifications.sql"),
		stepsOpen:               text("steps_open.sql"),
		runChoices:              text("run_choices.sql"),
		runLastLeaseLoss:        text("run_last_lease_loss.sql"),
		runTreeOpenCalls:        text("run_tree_open_calls.sql"),
		mapProgress:             text("map_progress.sql"),
		runTags:                 text("run_tags.sql"),
		tagSet:                  text("tag_set.sql"),
		runsList:                text("runs_list.sql"),
		runsListByTag:           text("runs_list_by_tag.sql"),
		runsListByTagKey:        text("runs_list_by_tag_key.sql"),
		runsListByNamePrefix:    text("runs_list_by_name_prefix.sql"),
		runTree:                 text("run_tree.sql"),
		runTreeCounts:           text("run_tree_counts.sql"),
		eventsPage:              text("events_page.sql"),
		eventCursorValid:        text("event_cursor_valid.sql"),
		runByName:               text("run_by_name.sql"),
		stepInsert:              text("step_insert.sql"),
		stepInsertOne:           text("step_insert_one.sql"),
		stepInsertIfAbsent:      text("step_insert_if_absent.sql"),
		stepUpdate:              text("step_update.sql"),
		stepState:               text("step_state.sql"),
		runFinish:               text("run_finish.sql"),
		runEndOwnership:         text("run_end_ownership.sql"),
		runHold:                 text("run_hold.sql"),
		setLockTimeout:          text("set_lock_timeout.sql"),
		setTransactionTimeouts:  text("set_transaction_timeouts.sql"),
		runState:                text("run_state.sql"),
		notify:                  text("notify.sql"),
		claimRuns:               text("claim_runs.sql"),
		claimHistories:          text("claim_histories.sql"),
		historyPart:             text("history_part.sql"),
		claimedLeases:           text("claimed_leases.sql"),
		claimPrepare:            text("claim_prepare.sql"),
		lanesFindUnknown:        text("lanes_find_unknown.sql"),
		writersInFlight:         text("writers_in_flight.sql"),
		writerMarkSession:       text("writer_mark_session.sql"),
		walPosition:             text("wal_position.sql"),
		heldRunsCheckpoints:     text("held_runs_checkpoints.sql"),
		writerMarkTx:            text("writer_mark_tx.sql"),
		workerUpsert:            text("worker_upsert.sql"),
		leaseExtend:             text("lease_extend.sql"),
		leaseLost:               text("lease_lost.sql"),
		leaseExpire:             text("lease_expire.sql"),
		workerDelete:            text("worker_delete.sql"),
		workers:                 text("workers.sql"),
		lanesOverdue:            text("lanes_overdue.sql"),
		workflowsExecuted:       text("workflows_executed.sql"),
		runByID:                 text("run_by_id.sql"),
		runStatuses:             text("run_statuses.sql"),
		history:                 text("history.sql"),
		now:                     text("now.sql"),
		listen:                  text("listen.sql"),
		listenSessionSettings:   text("listen_session_settings.sql"),
		presenceLock:            text("presence_lock.sql"),
		presenceRecord:          text("presence_record.sql"),
		presenceDeadWorkers:     text("presence_dead_workers.sql"),
		txCheckpoint:            text("tx_checkpoint.sql"),
		txCheckpointLock:        text("tx_checkpoint_lock.sql"),
		waitForStandbys:         text("wait_for_standbys.sql"),
		migrationLock:           text("migration_lock.sql"),
		migrationNoTimeouts:     text("migration_no_timeouts.sql"),
		migrationExists:         text("migration_exists.sql"),
		migrationVersion:        text("migration_version.sql"),
		untrustedOwners:         text("untrusted_owners.sql"),
		userTxSyncCommit:        text("user_tx_sync_commit.sql"),
		permitLineLock:          text("permit_line_lock.sql"),
		permitReturn:            text("permit_return.sql"),
		permitLimitShut:         text("permit_limit_shut.sql"),
		permitLimitBounds:       text("permit_limit_bounds.sql"),
		permitLinesRead:         text("permit_lines_read.sql"),
		permitRequestsRead:      text("permit_requests_read.sql"),
		permitDelete:            text("permit_delete.sql"),
		permitUpsert:            text("permit_upsert.sql"),
		permitOffer:             text("permit_offer.sql"),
		permitLineUpdateGranted: text("permit_line_update_granted.sql"),
		permitWaitingLines:      text("permit_waiting_lines.sql"),
		permitsOfRun:            text("permits_of_run.sql"),
		limitDeclare:            text("limit_declare.sql"),
		limitSet:                text("limit_set.sql"),
		limitDelete:             text("limit_delete.sql"),
		limits:                  text("limits.sql"),
		limitUse:                text("limit_use.sql"),
		admitQueueLock:          text("admit_queue_lock.sql"),
		admitHasWork:            text("admit_has_work.sql"),
		admitRunsLock:           text("admit_runs_lock.sql"),
		admitUnclaimedCount:     text("admit_unclaimed_count.sql"),
		admitRunsInLine:         text("admit_runs_in_line.sql"),
		admitKeysToCheck:        text("admit_keys_to_check.sql"),
		admitKeysRead:           text("admit_keys_read.sql"),
		admitRunsBehindKey:      text("admit_runs_behind_key.sql"),
		admitRunUpdate:          text("admit_run_update.sql"),
		admitPlaceUpsert:        text("admit_place_upsert.sql"),
		admitKeyUpsert:          text("admit_key_upsert.sql"),
		admitKeyDelete:          text("admit_key_delete.sql"),
		admitPlaceDelete:        text("admit_place_delete.sql"),
		admitKeysCheckAll:       text("admit_keys_check_all.sql"),
		admitQueueUpdate:        text("admit_queue_update.sql"),
		admitQueueDelete:        text("admit_queue_delete.sql"),
		queueRows:               text("queue_rows.sql"),
		queueDeclare:            text("queue_declare.sql"),
		queueSet:                text("queue_set.sql"),
		queuePause:              text("queue_pause.sql"),
		queueResume:             text("queue_resume.sql"),
		queueDelete:             text("queue_delete.sql"),
		queues:                  text("queues.sql"),
		queueKeys:               text("queue_keys.sql"),
		queueDepth:              text("queue_depth.sql"),
		placeOfRun:              text("place_of_run.sql"),
		runInsertWithPlace:      text("run_insert_with_place.sql"),
		runsListByGroupKey:      text("runs_list_by_group_key.sql"),
		startByMarkClear:        text("start_by_mark_clear.sql"),
		foldKeyLock:             text("fold_key_lock.sql"),
		foldKeyTryLock:          text("fold_key_try_lock.sql"),
		foldKeyInsert:           text("fold_key_insert.sql"),
		foldKeyUpdate:           text("fold_key_update.sql"),
		foldKeyDelete:           text("fold_key_delete.sql"),
		foldKeysDue:             text("fold_keys_due.sql"),
		foldKeysRunEnded:        text("fold_keys_run_ended.sql"),
		foldRunStates:           text("fold_run_states.sql"),
		foldRunRelease:          text("fold_run_release.sql"),
		txBegin:                 text("tx_begin.sql"),
		txCheckBegun:            text("tx_check_begun.sql"),
		userTxSettings:          text("user_tx_settings.sql"),
		tokenKey:                text("token_key.sql"),
		tokenKeyInsert:          text("token_key_insert.sql"),
		userTxRestoreSettings:   text("user_tx_restore_settings.sql"),
		schedulesDue:            text("schedules_due.sql"),
		schedulesWaitingReady:   text("schedules_waiting_ready.sql"),
		scheduleLock:            text("schedule_lock.sql"),
		scheduleTryLock:         text("schedule_try_lock.sql"),
		scheduleLastRun:         text("schedule_last_run.sql"),
		scheduleByName:          text("schedule_by_name.sql"),
		schedulesPage:           text("schedules_page.sql"),
		scheduleInsert:          text("schedule_insert.sql"),
		scheduleUpdate:          text("schedule_update.sql"),
		scheduleDelete:          text("schedule_delete.sql"),
		fireUpsert:              text("fire_upsert.sql"),
		firesByTime:             text("fires_by_time.sql"),
		firesLatest:             text("fires_latest.sql"),
		firesOldest:             text("fires_oldest.sql"),
		fireDelete:              text("fire_delete.sql"),
		fireDeleteAll:           text("fire_delete_all.sql"),
		foldedFiresRead:         text("folded_fires_read.sql"),
		foldedFiresUpsert:       text("folded_fires_upsert.sql"),
		foldedFiresDeleteAll:    text("folded_fires_delete_all.sql"),
		requeueQueueOf:          text("requeue_queue_of.sql"),
		requeueQueueLock:        text("requeue_queue_lock.sql"),
		requeueLock:             text("requeue_lock.sql"),
		requeueRead:             text("requeue_read.sql"),
		requeueKey:              text("requeue_key.sql"),
		requeueWrite:            text("requeue_write.sql"),
		requeuePlaceWrite:       text("requeue_place_write.sql"),
	}
}

// statement returns the text of one file without its comments, which modes without prepared statements
// would send each time.
func statement(name, schema string) string {
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
	return qualify(strings.TrimSuffix(strings.TrimSpace(b.String()), ";"), schema)
}

// qualify replaces the schema name durable by another one.
func qualify(text, schema string) string {
	quoted := pgx.Identifier{schema}.Sanitize()
	return strings.NewReplacer(
		"durable.", quoted+".",
		"SCHEMA durable", "SCHEMA "+quoted,
		`"durable_wake"`, pgx.Identifier{notifyChannel(schema)}.Sanitize(),
	).Replace(text)
}

// notifyChannel returns the name of the channel on which the processes that share a schema notify each other.
func notifyChannel(schema string) string { return schema + "_wake" }
