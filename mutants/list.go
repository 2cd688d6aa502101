package main

import "path"

// mutant is a defect to introduce.
type mutant struct {
	name   string
	places []place
}

// place is a file to change, and the test that should fail.
type place struct {
	file          string
	detectingTest test
	changes       []change
}

// validityTests holds the tests that fail if a changed statement is no longer valid SQL, by folder.
var validityTests = map[string]test{
	"sqlite/sql":   {"./sqlite", "TestStatementsPrepare"},
	"postgres/sql": {"./postgres", "TestEveryFileIsPreparedAsItStands"},
}

// validityTest returns the test that the changed file must still pass, if there is one.
func (p *place) validityTest() (t test, ok bool) {
	if path.Ext(p.file) != ".sql" {
		return t, false
	}
	t, ok = validityTests[path.Dir(p.file)]
	return t, ok
}

// change replaces a text that occurs once in the file.
type change struct{ old, new string }

// test is a package and a pattern for -run of go test.
type test struct{ pkg, name string }

const (
	inSQLite   = "^TestConformance$"
	inPostgres = "^TestConformance$/^cache_statement$"
)

func sqliteTest(name string) test   { return test{"./sqlite", inSQLite + name} }
func postgresTest(name string) test { return test{"./postgres", inPostgres + name} }
func modelTest(name string) test    { return test{"./internal/store/model", name} }
func rootTest(name string) test     { return test{".", name} }
func slotsTest(name string) test    { return test{"./internal/slots", name} }

var mutants = []mutant{
	{"no epoch fence", []place{
		{
			"sqlite/sql/step_insert.sql", sqliteTest("/^step$/an_older_epoch"),
			[]change{{"AND epoch = ? AND status = 2", "AND epoch >= ? AND status = 2"}},
		},
		{
			"sqlite/sql/step_insert_completed.sql", sqliteTest("/^step$/an_older_epoch"),
			[]change{{"AND epoch = ? AND status = 2", "AND epoch >= ? AND status = 2"}},
		},
		{
			"sqlite/sql/step_update.sql", sqliteTest("/^step$/an_older_epoch"),
			[]change{{"AND epoch = ?3 AND status = 2", "AND status = 2"}},
		},
		{
			"postgres/sql/step_insert.sql",
			test{"./postgres", "TestConformanceOfMany/^step$/an_older_epoch"},
			[]change{{"AND r.epoch = ($7::bigint[])[i] AND r.status = 2", "AND ($7::bigint[])[i] IS NOT NULL AND r.status = 2"}},
		},
		{
			"postgres/sql/step_insert_one.sql", postgresTest("/^step$/an_older_epoch"),
			[]change{{"AND r.epoch = $7::bigint AND r.status = 2", "AND r.status = 2"}},
		},
		{
			"postgres/sql/step_insert_if_absent.sql",
			test{"./postgres", "TestAFlushThatMeetsARow"},
			[]change{{"AND r.epoch = ($7::bigint[])[i] AND r.status = 2", "AND ($7::bigint[])[i] IS NOT NULL AND r.status = 2"}},
		},
		{
			"postgres/sql/step_update.sql", postgresTest("/^step$/an_older_epoch"),
			[]change{{"AND r.epoch = item.epoch AND r.status = 2", "AND r.status = 2"}},
		},
		{
			"postgres/sql/writers_in_flight.sql",
			test{"./postgres", "^TestTakeoverWaitsForWritesUnderWay$/^cache_statement$"},
			[]change{{"AND l.mode = 'RowExclusiveLock'", "AND l.mode = 'ExclusiveLock'"}},
		},
	}},
	{"a fence without its nonce", []place{
		{
			"sqlite/sql/step_insert.sql", sqliteTest("/^nonce$/a_step_at_another"),
			[]change{{"AND epoch = ? AND status = 2", "AND epoch >> 32 = ? >> 32 AND status = 2"}},
		},
		{
			"sqlite/sql/step_insert_completed.sql", sqliteTest("/^nonce$/a_step_at_another"),
			[]change{{"AND epoch = ? AND status = 2", "AND epoch >> 32 = ? >> 32 AND status = 2"}},
		},
		{
			"sqlite/sql/step_update.sql", sqliteTest("/^nonce$/a_step_at_another"),
			[]change{{"AND epoch = ?3 AND status = 2", "AND epoch >> 32 = ?3 >> 32 AND status = 2"}},
		},
		{
			"sqlite/sql/run_end_ownership.sql", sqliteTest("/^nonce$/the_end_at_another"),
			[]change{{"AND epoch = ? AND status = 2", "AND epoch >> 32 = ? >> 32 AND status = 2"}},
		},
		{
			"sqlite/sql/lease_extend.sql", sqliteTest("/^nonce$/a_lease_of_another"),
			[]change{{"AND epoch = ? AND status = 2", "AND epoch >> 32 = ? >> 32 AND status = 2"}},
		},
		{
			"sqlite/sql/run_insert_child.sql", sqliteTest("/^nonce$/a_child_of_a_parent"),
			[]change{{"AND epoch = ? AND status = 2", "AND epoch >> 32 = ? >> 32 AND status = 2"}},
		},
		{
			"sqlite/sql/claim_run.sql", sqliteTest("/^nonce$/a_claim's_epoch"),
			[]change{{"((epoch >> 32) + 1) << 32 | ?", "((epoch >> 32) + 1) << 32 | (0 & ?)"}},
		},
		{
			"postgres/sql/step_insert.sql",
			test{"./postgres", "TestConformanceOfMany/^nonce$/a_step_at_another"},
			[]change{{"AND r.epoch = ($7::bigint[])[i] AND", "AND r.epoch >> 32 = ($7::bigint[])[i] >> 32 AND"}},
		},
		{
			"postgres/sql/step_insert_one.sql", postgresTest("/^nonce$/a_step_at_another"),
			[]change{{"AND r.epoch = $7::bigint AND", "AND r.epoch >> 32 = $7::bigint >> 32 AND"}},
		},
		{
			"postgres/sql/step_update.sql", postgresTest("/^nonce$/a_step_at_another"),
			[]change{{"AND r.epoch = item.epoch AND", "AND r.epoch >> 32 = item.epoch >> 32 AND"}},
		},
		{
			"postgres/sql/run_finish.sql",
			test{"./postgres", "TestConformanceOfMany/^nonce$/the_end_at_another"},
			[]change{{"AND r.epoch = item.epoch AND", "AND r.epoch >> 32 = item.epoch >> 32 AND"}},
		},
		{
			"postgres/sql/run_finish_one.sql", postgresTest("/^nonce$/the_end_at_another"),
			[]change{{"AND r.epoch = $3::bigint AND", "AND r.epoch >> 32 = $3::bigint >> 32 AND"}},
		},
		{
			"postgres/sql/run_end_ownership.sql", postgresTest("/^nonce$/the_end_at_another"),
			[]change{{"AND r.epoch = item.epoch AND", "AND r.epoch >> 32 = item.epoch >> 32 AND"}},
		},
		{
			"postgres/sql/lease_extend.sql", postgresTest("/^nonce$/a_lease_of_another"),
			[]change{{"AND r.epoch = held.epoch AND", "AND r.epoch >> 32 = held.epoch >> 32 AND"}},
		},
		{
			"postgres/sql/run_insert_any.sql", postgresTest("/^nonce$/a_child_of_a_parent"),
			[]change{{"AND p.epoch OPERATOR(pg_catalog.=) item.parent_epoch AND", "AND p.epoch >> 32 = item.parent_epoch >> 32 AND"}},
		},
		{
			"postgres/sql/signal_receive.sql", postgresTest("/^nonce$/a_receive_at_another"),
			[]change{{"AND r.epoch = $7::bigint AND", "AND r.epoch >> 32 = $7::bigint >> 32 AND"}},
		},
		{
			"postgres/sql/tx_step_checkpoint.sql",
			test{"./postgres", "^TestCheckpointInTx$"},
			[]change{{"AND r.epoch OPERATOR(pg_catalog.=) $7::bigint AND", "AND r.epoch >> 32 = $7::bigint >> 32 AND"}},
		},
		{
			"postgres/sql/claim_runs.sql", postgresTest("/^nonce$/a_claim's_epoch"),
			[]change{{"<< 32 | $8::bigint", "<< 32 | (0 & $8::bigint)"}},
		},
		{
			"internal/store/write_outcome.go", postgresTest("/^nonce$/an_end_that_another"),
			[]change{{"return row.Epoch == w.Epoch && row.Status", "return row.Epoch.Count == w.Epoch.Count && row.Status"}},
		},
		{
			"internal/store/write_outcome.go", sqliteTest("/^nonce$/a_step_that_another"),
			[]change{{"return row.Epoch == want.Epoch && row.Attempt", "return row.Epoch.Count == want.Epoch.Count && row.Attempt"}},
		},
	}},
	{"no write token", []place{
		{
			"internal/store/write_outcome.go", sqliteTest("/^step$/a_replay"),
			[]change{{"return row.Epoch == want.Epoch && row.Attempt", "return false && row.Attempt"}},
		},
		{
			"internal/store/write_outcome.go", sqliteTest("/^step$/only_exactly"),
			[]change{{"return row.Epoch == want.Epoch && row.Attempt", "return true || row.Attempt"}},
		},
		{
			"internal/store/write_outcome.go", sqliteTest("/^run$/a_replay"),
			[]change{{"return row.Epoch == w.Epoch && row.Status", "return false && row.Status"}},
		},
		{
			"internal/store/write_outcome.go", postgresTest("/^run$/the_first_end"),
			[]change{{"return row.Epoch == w.Epoch && row.Status", "return true || row.Status"}},
		},
	}},
	{"unsorted locks", []place{
		{
			"postgres/sorted_batch.go", modelTest("TestNewNamesAreSorted"),
			[]change{{"slices.SortFunc(w.newSteps, compareSteps)\n", "\n"}},
		},
		{
			"postgres/sorted_batch.go", modelTest("TestNewNamesAreSorted"),
			[]change{{"slices.SortFunc(w.starts, store.CompareStarts)\n", "\n"}},
		},
		{
			"postgres/sorted_batch.go", modelTest("TestLocksAreSorted"),
			[]change{{"slices.SortFunc(w.runsToLock, store.CompareUUIDsByShard)\n", "\n"}},
		},
	}},
	{"an outcome before the commit", []place{
		{
			"internal/journal/journal.go",
			test{"./internal/journal", "TestPatienceEnds|TestBadRowFailsAlone"},
			[]change{
				{"	began := time.Now()\n	retries, err := j.commitWithRetry(batch, time.Time{})\n", "	for _, e := range entries {\n		e.result <- nil\n	}\n	began := time.Now()\n	retries, err := j.commitWithRetry(batch, time.Time{})\n"},
				{"			e.result <- err\n", ""},
			},
		},
	}},
	{"a read-back without a commit", []place{
		{
			"postgres/sql/wait_for_standbys.sql",
			test{"./postgres", "^TestWhatIsReadBackWaitsForTheStandby$"},
			[]change{{"pg_logical_emit_message(true,", "pg_logical_emit_message(false,"}},
		},
		{
			"postgres/unwritten_outcomes.go",
			test{"./postgres", "^TestWhatIsReadBackWaitsForTheStandby$/^step$"},
			[]change{{`err := s.runAndAwaitStandbys(ask, "read back steps",`, `err := ask("read back steps",`}},
		},
		{
			"postgres/tx_step.go",
			test{"./postgres", "^TestWhatIsReadBackWaitsForTheStandby$/^blind_transaction$"},
			[]change{{"		return s.awaitStandbys(ctx)\n", "		return nil\n"}},
		},
	}},
	{"an unguarded finish", []place{
		{
			"sqlite/sql/run_end_ownership.sql", sqliteTest("/^run$/an_older_epoch"),
			[]change{{"AND epoch = ? AND status = 2", "AND (epoch = ? OR status = 2)"}},
		},
		{
			"sqlite/sql/run_end_ownership.sql", sqliteTest("/^run$/the_first_end"),
			[]change{{"AND status = 2 AND", "AND"}},
		},
		{
			"postgres/sql/run_finish.sql",
			test{"./postgres", "TestConformanceOfMany/^run$/an_older_epoch"},
			[]change{{"AND r.epoch = item.epoch AND r.status = 2", "AND r.epoch >= item.epoch AND r.status = 2"}},
		},
		{
			"postgres/sql/run_finish.sql",
			test{"./postgres", "TestConformanceOfMany/^run$/the_first_end"},
			[]change{{"AND r.epoch = item.epoch AND r.status = 2", "AND r.epoch = item.epoch"}},
		},
		{
			"postgres/sql/run_finish_one.sql", postgresTest("/^run$/an_older_epoch"),
			[]change{{"AND r.epoch = $3::bigint AND r.status = 2", "AND r.epoch >= $3::bigint AND r.status = 2"}},
		},
		{
			"postgres/sql/run_finish_one.sql", postgresTest("/^run$/the_first_end"),
			[]change{{"AND r.epoch = $3::bigint AND r.status = 2", "AND r.epoch = $3::bigint"}},
		},
		{
			"postgres/sql/run_end_ownership.sql", postgresTest("/^run$/an_older_epoch"),
			[]change{{"AND r.epoch = item.epoch AND r.status = 2", "AND r.status = 2"}},
		},
	}},
	{"no parent lock at child creation", []place{
		{
			"sqlite/sql/run_insert_child.sql", sqliteTest("/^child$/only_while"),
			[]change{{"AND epoch = ? AND status = 2 AND control = 0", "AND epoch >= ?"}},
		},
		{
			"postgres/sql/run_insert_any.sql", postgresTest("/^child$/only_while"),
			[]change{{"AND p.epoch OPERATOR(pg_catalog.=) item.parent_epoch AND p.status OPERATOR(pg_catalog.=) 2 AND p.control OPERATOR(pg_catalog.=) 0", ""}},
		},
		{
			"postgres/sorted_batch.go", modelTest("TestAStartWaitsForWhatIsAskedOfItsParent"),
			[]change{{"w.runsToLock = append(w.runsToLock, item.Run.Parent.UUID)\n", "_ = item\n"}},
		},
	}},
	{"a resume in two commits", []place{
		{
			"sqlite/control.go", modelTest("TestAControlOperationIsOneTransaction/sqlite"),
			[]change{{"	for i := range changes {\n", `	for i := range changes {
		if i == 1 && o.Verb == store.VerbResume {
			for _, q := range []queryID{qCommit, qBegin} {
				if _, err := x.exec(q); err != nil {
					return err
				}
			}
		}
`}},
		},
		{
			"postgres/control.go", modelTest("TestAControlOperationIsOneTransaction/postgres"),
			[]change{{"	made := int64(0)\n", `	made := int64(0)
	if o.Verb == store.VerbResume && len(changes) > 1 {
		err := ask("half an order", func(batch *pgx.Batch) {
			batch.Queue(s.statements.controlApply, controlApplyArgs(o, changes[:1], notifyChannel(s.schema))...)
			batch.Queue(commitSQL)
			batch.Queue(beginSQL)
		}, func(res statementResults) error {
			err := eachRow(res, func(rows pgx.Rows) error { return nil })
			if err == nil {
				err = skipResults(2, func(statementResults) error { return nil })(res)
			}
			return err
		})
		if err != nil {
			return err
		}
		changes = changes[1:]
	}
`}},
		},
	}},
	{"a choice without losers", []place{
		{
			"internal/engine/call_choice.go", rootTest("^TestEndedBranchStaysEnded$/^sqlite$"),
			[]change{{"			ended = append(ended, name)\n", "			_ = name\n"}},
		},
		{
			"internal/engine/call_choice.go", rootTest("^TestNoChildStartsBesideAChoice$"),
			[]change{{"		l.Branch.commitLock.Lock()\n", "		_ = l\n"}, {"			l.Branch.commitLock.Unlock()\n", "			_ = l\n"}},
		},
		{
			"internal/engine/run.go", rootTest("^TestReloadCancelsLosersChildren$/^sqlite$"),
			[]change{{" || !r.cancelLosersChildren(true)", ""}},
		},
		{
			"map.go", rootTest("^TestFailedMapBeginsNothingMore$/^sqlite$"),
			[]change{{"	m.stopped.Store(failed && !m.options.collectsErrors)\n", "	_ = failed\n"}},
		},
	}},
	{"a slot that is given twice, or not given again", []place{
		{
			"internal/slots/pool.go", slotsTest("^TestNoSlotIsGivenTwice$"),
			[]change{{"len(p.queue) > 0 && p.takenSlots < p.size", "len(p.queue) > 0"}},
		},
		{
			"internal/slots/pool.go", slotsTest("^TestDrainWaitsForAll$"),
			[]change{{"p.closed && p.takenSlots+p.lentSlots+p.prefetchPlaces == 0", "p.closed && p.takenSlots+p.prefetchPlaces == 0"}},
		},
		{
			"internal/slots/slot.go", slotsTest("^TestRunLeavesWhileItWaits$"),
			[]change{{"	s.isReleased = true\n	p.regain(s)\n", "	s.isReleased = true\n"}},
		},
		{
			"internal/slots/slot.go", slotsTest("^TestWithdrawnRunGetsNoSlot$"),
			[]change{{"	s.pool.removeFromQueue(s)\n", ""}},
		},
		{
			"internal/slots/steps.go", slotsTest("^TestStepSlotsAreGivenInOrder$"),
			[]change{{"		s.queue.Remove(place)\n", "		_ = place\n"}},
		},
		{
			"internal/slots/steps.go", slotsTest("^TestWaitsThatEndTogetherTakeOneSlot$"),
			[]change{{"		s.isHeld = true\n		s.endRequests()\n", "		s.isHeld = true\n"}},
		},
	}},
	{"an end of a child is not counted", []place{
		{
			"sqlite/sql/child_ends_count.sql", sqliteTest("/^child_ends$/the_end_that_reaches"),
			[]change{{"coalesce(child_ends, 0) + 1", "coalesce(child_ends, 0)"}},
		},
		{
			"postgres/sql/child_ends_count_and_wake_parents.sql", postgresTest("/^child_ends$/the_end_that_reaches"),
			[]change{{"coalesce(s.child_ends, 0) + ended.ends", "coalesce(s.child_ends, 0)"}},
		},
	}},
	{"a parent does not look at its children a minute after an end", []place{
		{
			"sqlite/set_awaited_child_ends.go", sqliteTest("/^child_ends$/an_end_that_is_not_awaited"),
			[]change{{"store.MaxParentWakeDelay)", "60*store.MaxParentWakeDelay)"}},
		},
		{
			"postgres/sql/child_ends_count_and_wake_parents.sql", postgresTest("/^child_ends$/an_end_that_is_not_awaited"),
			[]change{{"interval '1 minute'", "interval '1 hour'"}},
		},
	}},
}
