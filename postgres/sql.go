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
	runsLock, start, startMade, startAny, runByName, parentState                                                              string
	stepInsert, stepInsertOne, stepInsertIfAbsent, stepUpdate, stepState                                                      string
	receive, signal, signalState, unreceived                                                                                  string
	runFinish, runEndOwnership, runHold, runState, wake, notify, setLockTimeout                                               string
	controlLock, controlTree, shiftTimers, controlApply, deadline                                                             string
	claim, claimPrepare, lanesFind, claimHistories, historyPart, writersInFlight, claimedLeases                               string
	writerMarkSession, writerMarkTx, walPosition, heldRunsCheckpoints                                                         string
	workerBeat, lease, leaseLost                                                                                              string
	expire, workerRemove, workers, lanesOverdue, workflowsExecuted                                                            string
	runByID, statuses, history, now, notifications                                                                            string
	openSteps, choices, runLastLeaseLoss, mapProgress, tags, tag, treeOpenCalls                                               string
	list, listTag, listTagKey, listName, tree, treeCounts, events, eventCursorValid                                           string
	listenSession, listen, presenceLock, presenceRecord, presenceDead                                                         string
	txCheckpoint, txCheckpointLock, waitForStandbys                                                                           string
	migrationLock, migrationFound, migrationVersionOf, migrationNoTimeouts                                                    string
	permitLock, permitReturn, permitLimits, permitLine, permitAsked                                                           string
	permitDelete, permitWrite, permitOffer, permitLineUpdate                                                                  string
	waitingLines, permitsOf, limitDeclare, limitSet, limitDelete                                                              string
	limits, limitUse, queueRows, queueDeclare, queueSet, queuePause                                                           string
	queueResume, queueDelete, queues, queueKeys, queueDepth, placeOf                                                          string
	admitLock, admitFound, admitRuns, admitUnclaimed, admitLine, admitLook                                                    string
	admitKeys, admitBehind, admitRunWrite, admitPlaceWrite, admitKeyWrite                                                     string
	admitKeyDelete, admitLookAll, admitQueueWrite, admitQueueDelete                                                           string
	startPlaced, startByKept, listGroup                                                                                       string
	txBegin, txCheckBegun, untrustedOwners, userTxSyncCommit, userTxSettings, userTxRestoreSettings, tokenKey, tokenKeyInsert string
	scheduleDue, scheduleWaiting, scheduleLock, scheduleLockFree, scheduleLastRun                                             string
	scheduleByName, schedules, scheduleInsert, scheduleUpdate, scheduleDelete                                                 string
	fireUpsert, fireStarted, fireLatest, fireOldest, fireDelete, fireDeleteAll                                                string
	firedRead, firedUpsert, firedDeleteAll                                                                                    string
	foldLock, foldLockFree, foldInsert, foldUpdate, foldDelete                                                                string
	foldDue, foldEnded, foldRuns, foldRelease                                                                                 string
}

func loadStatements(schema string) statements {
	text := func(name string) string { return statement(name, schema) }
	return statements{
		engineSettings:        text("engine_settings.sql"),
		runsLock:              text("runs_lock.sql"),
		start:                 text("run_insert.sql"),
		startMade:             text("run_inserted.sql"),
		startAny:              text("run_insert_any.sql"),
		parentState:           text("parent_state.sql"),
		receive:               text("receive.sql"),
		signal:                text("signal_insert.sql"),
		signalState:           text("signal_state.sql"),
		unreceived:            text("signals_unreceived.sql"),
		wake:                  text("run_wake.sql"),
		controlLock:           text("control_lock.sql"),
		controlTree:           text("control_tree.sql"),
		shiftTimers:           text("control_shift_timers.sql"),
		controlApply:          text("control_apply.sql"),
		deadline:              text("deadline.sql"),
		notifications:         text("notifications.sql"),
		openSteps:             text("steps_open.sql"),
		choices:               text("choices.sql"),
		runLastLeaseLoss:      text("run_last_lease_loss.sql"),
		treeOpenCalls:         text("tree_open_calls.sql"),
		mapProgress:           text("map_progress.sql"),
		tags:                  text("tags.sql"),
		tag:                   text("tag_set.sql"),
		list:                  text("list.sql"),
		listTag:               text("list_tag.sql"),
		listTagKey:            text("list_tag_key.sql"),
		listName:              text("list_name.sql"),
		tree:                  text("tree.sql"),
		treeCounts:            text("tree_counts.sql"),
		events:                text("events.sql"),
		eventCursorValid:      text("event_cursor_valid.sql"),
		runByName:             text("run_by_name.sql"),
		stepInsert:            text("step_insert.sql"),
		stepInsertOne:         text("step_insert_one.sql"),
		stepInsertIfAbsent:    text("step_insert_if_absent.sql"),
		stepUpdate:            text("step_update.sql"),
		stepState:             text("step_state.sql"),
		runFinish:             text("run_finish.sql"),
		runEndOwnership:       text("run_end_ownership.sql"),
		runHold:               text("run_hold.sql"),
		setLockTimeout:        text("set_lock_timeout.sql"),
		runState:              text("run_state.sql"),
		notify:                text("notify.sql"),
		claim:                 text("claim.sql"),
		claimHistories:        text("claim_histories.sql"),
		historyPart:           text("history_part.sql"),
		claimedLeases:         text("claimed_leases.sql"),
		claimPrepare:          text("claim_prepare.sql"),
		lanesFind:             text("lanes_find.sql"),
		writersInFlight:       text("writers_in_flight.sql"),
		writerMarkSession:     text("writer_mark_session.sql"),
		walPosition:           text("wal_position.sql"),
		heldRunsCheckpoints:   text("held_runs_checkpoints.sql"),
		writerMarkTx:          text("writer_mark_tx.sql"),
		workerBeat:            text("worker_upsert.sql"),
		lease:                 text("lease_extend.sql"),
		leaseLost:             text("lease_lost.sql"),
		expire:                text("lease_expire.sql"),
		workerRemove:          text("worker_delete.sql"),
		workers:               text("workers.sql"),
		lanesOverdue:          text("lanes_overdue.sql"),
		workflowsExecuted:     text("workflows_executed.sql"),
		runByID:               text("run_by_id.sql"),
		statuses:              text("statuses.sql"),
		history:               text("history.sql"),
		now:                   text("now.sql"),
		listen:                text("listen.sql"),
		listenSession:         text("listen_session.sql"),
		presenceLock:          text("presence_lock.sql"),
		presenceRecord:        text("presence_record.sql"),
		presenceDead:          text("presence_dead.sql"),
		txCheckpoint:          text("tx_checkpoint.sql"),
		txCheckpointLock:      text("tx_checkpoint_lock.sql"),
		waitForStandbys:       text("wait_for_standbys.sql"),
		migrationLock:         text("migration_lock.sql"),
		migrationNoTimeouts:   text("migration_no_timeouts.sql"),
		migrationFound:        text("migration_exists.sql"),
		migrationVersionOf:    text("migration_version.sql"),
		untrustedOwners:       text("untrusted_owners.sql"),
		userTxSyncCommit:      text("user_tx_sync_commit.sql"),
		permitLock:            text("permit_lock.sql"),
		permitReturn:          text("permit_return.sql"),
		permitLimits:          text("permit_limits.sql"),
		permitLine:            text("permit_line.sql"),
		permitAsked:           text("permit_asked.sql"),
		permitDelete:          text("permit_delete.sql"),
		permitWrite:           text("permit_write.sql"),
		permitOffer:           text("permit_offer.sql"),
		permitLineUpdate:      text("permit_line_update.sql"),
		waitingLines:          text("waiting_lines.sql"),
		permitsOf:             text("permits_of.sql"),
		limitDeclare:          text("limit_declare.sql"),
		limitSet:              text("limit_set.sql"),
		limitDelete:           text("limit_delete.sql"),
		limits:                text("limits.sql"),
		limitUse:              text("limit_use.sql"),
		admitLock:             text("admit_lock.sql"),
		admitFound:            text("admit_found.sql"),
		admitRuns:             text("admit_runs.sql"),
		admitUnclaimed:        text("admit_unclaimed.sql"),
		admitLine:             text("admit_line.sql"),
		admitLook:             text("admit_look.sql"),
		admitKeys:             text("admit_keys.sql"),
		admitBehind:           text("admit_behind.sql"),
		admitRunWrite:         text("admit_run_write.sql"),
		admitPlaceWrite:       text("admit_place_write.sql"),
		admitKeyWrite:         text("admit_key_write.sql"),
		admitKeyDelete:        text("admit_key_delete.sql"),
		admitLookAll:          text("admit_look_all.sql"),
		admitQueueWrite:       text("admit_queue_write.sql"),
		admitQueueDelete:      text("admit_queue_delete.sql"),
		queueRows:             text("queue_rows.sql"),
		queueDeclare:          text("queue_declare.sql"),
		queueSet:              text("queue_set.sql"),
		queuePause:            text("queue_pause.sql"),
		queueResume:           text("queue_resume.sql"),
		queueDelete:           text("queue_delete.sql"),
		queues:                text("queues.sql"),
		queueKeys:             text("queue_keys.sql"),
		queueDepth:            text("queue_depth.sql"),
		placeOf:               text("place_of.sql"),
		startPlaced:           text("run_insert_placed.sql"),
		listGroup:             text("list_group.sql"),
		startByKept:           text("start_by_kept.sql"),
		foldLock:              text("fold_lock.sql"),
		foldLockFree:          text("fold_lock_free.sql"),
		foldInsert:            text("fold_insert.sql"),
		foldUpdate:            text("fold_update.sql"),
		foldDelete:            text("fold_delete.sql"),
		foldDue:               text("fold_due.sql"),
		foldEnded:             text("fold_ended.sql"),
		foldRuns:              text("fold_runs.sql"),
		foldRelease:           text("fold_release.sql"),
		txBegin:               text("tx_begin.sql"),
		txCheckBegun:          text("tx_check_begun.sql"),
		userTxSettings:        text("user_tx_settings.sql"),
		tokenKey:              text("token_key.sql"),
		tokenKeyInsert:        text("token_key_insert.sql"),
		userTxRestoreSettings: text("user_tx_restore_settings.sql"),
		scheduleDue:           text("schedule_due.sql"),
		scheduleWaiting:       text("schedule_waiting.sql"),
		scheduleLock:          text("schedule_lock.sql"),
		scheduleLockFree:      text("schedule_lock_free.sql"),
		scheduleLastRun:       text("schedule_last_run.sql"),
		scheduleByName:        text("schedule_by_name.sql"),
		schedules:             text("schedules.sql"),
		scheduleInsert:        text("schedule_insert.sql"),
		scheduleUpdate:        text("schedule_update.sql"),
		scheduleDelete:        text("schedule_delete.sql"),
		fireUpsert:            text("fire_upsert.sql"),
		fireStarted:           text("fire_started.sql"),
		fireLatest:            text("fire_latest.sql"),
		fireOldest:            text("fire_oldest.sql"),
		fireDelete:            text("fire_delete.sql"),
		fireDeleteAll:         text("fire_delete_all.sql"),
		firedRead:             text("fired_read.sql"),
		firedUpsert:           text("fired_upsert.sql"),
		firedDeleteAll:        text("fired_delete_all.sql"),
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
		`"durable_wake"`, pgx.Identifier{channel(schema)}.Sanitize(),
	).Replace(text)
}

// channel returns the name of the channel on which the processes that share a schema notify each other.
func channel(schema string) string { return schema + "_wake" }
