package sqlite

import (
	"embed"
	"strings"
)

// The statements stand in .sql files beside this one, so that each can be read,
// and run in the sqlite3 shell, alone. None is built in Go.
//
//go:embed *.sql
var files embed.FS

// query names one statement. The zero value is none.
type query uint8

const (
	_ query = iota
	qBegin
	qCommit
	qRollback
	qStepInsert
	qStepUpdate
	qStepByName
	qStepsOfRun
	qStepsTerminal
	qRunInsert
	qRunFinish
	qRunByID
	qRunByName
	qWakeFirst
	qWakeNext
	qClaimDue
	qClaimSuspect
	qClaimTake
	qClaimPause
	qLeaseExtend
	qLeaseExpire
	qWorkerUpsert
	qWorkerDelete
	qWorkers
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
		qBegin:            "begin.sql",
		qCommit:           "commit.sql",
		qRollback:         "rollback.sql",
		qStepInsert:       "step_insert.sql",
		qStepUpdate:       "step_update.sql",
		qStepByName:       "step_by_name.sql",
		qStepsOfRun:       "steps_of_run.sql",
		qStepsTerminal:    "steps_terminal.sql",
		qRunInsert:        "run_insert.sql",
		qRunFinish:        "run_finish.sql",
		qRunByID:          "run_by_id.sql",
		qRunByName:        "run_by_name.sql",
		qWakeFirst:        "wake_first.sql",
		qWakeNext:         "wake_next.sql",
		qClaimDue:         "claim_due.sql",
		qClaimSuspect:     "claim_suspect.sql",
		qClaimTake:        "claim_take.sql",
		qClaimPause:       "claim_pause.sql",
		qLeaseExtend:      "lease_extend.sql",
		qLeaseExpire:      "lease_expire.sql",
		qWorkerUpsert:     "worker_upsert.sql",
		qWorkerDelete:     "worker_delete.sql",
		qWorkers:          "workers.sql",
		qDataVersion:      "data_version.sql",
		qEncoding:         "encoding.sql",
		qJournalWAL:       "journal_wal.sql",
		qMigrationTable:   "migration_table.sql",
		qMigrationExists:  "migration_exists.sql",
		qMigrationVersion: "migration_version.sql",
		qMigrationInsert:  "migration_insert.sql",
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
		b, err := files.ReadFile(fileOf(q))
		if err != nil {
			panic("sqlite: the embedded statement is missing: " + err.Error())
		}
		all[q] = strings.TrimRight(string(b), "; \t\r\n")
	}
	return &all
}
