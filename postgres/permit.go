package postgres

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// GrantAndReturnPermits implements store.LimitStore. One transaction locks the limit keys, reads them, and writes what
// store.LimitKeyState.Plan has decided. It takes two round trips: one locks and reads, and one writes and commits. The locks are held
// for little more than the commit takes. If other transactions have locked runs that would get offers, further transactions of the
// call make the offers to the next steps in line.
func (s *database) GrantAndReturnPermits(ctx context.Context, b *store.PermitBatch) error {
	if len(b.AllLimitKeys()) == 0 {
		return nil
	}
	busy := make(map[uuid.UUID]bool)
	began := time.Now()
	locked, err := s.grantAndReturnPermitsOnce(ctx, b, busy)
	for round := 1; err == nil && len(locked) > 0; round++ {
		for _, g := range locked {
			b.ScheduleRecheck(g, b.Now.Add(lockedRecheckDelay))
		}
		took := time.Since(began)
		if round == maxOfferRounds || took > maxOfferTime { // the callers of the granted requests wait for this call to return
			break
		}
		again := &store.PermitBatch{Now: b.Now.Add(took), CloseDurationAfterRewind: b.CloseDurationAfterRewind, LimitKeys: locked} // without requests, because they have their outcomes
		if locked, err = s.grantAndReturnPermitsOnce(ctx, again, busy); err != nil {
			return nil // b was committed; the scheduled recheck makes the offers
		}
	}
	return err
}

// grantAndReturnPermitsOnce executes one transaction of GrantAndReturnPermits. It makes no offers to the runs in busy. It adds the runs that
// another transaction has locked to busy, and returns the limit keys in which these runs would have got an offer.
func (s *database) grantAndReturnPermitsOnce(ctx context.Context, b *store.PermitBatch, busy map[uuid.UUID]bool) (locked []store.LimitKey, err error) {
	lineKeys := b.AllLimitKeys()
	r := &lockedLimitKeys{limitKeys: make([]store.LimitKeyState, len(lineKeys)), lockedRuns: busy}
	for i, g := range lineKeys {
		r.limitKeys[i].LimitKey = g
	}
	err = s.tryTransactionWithOptions(ctx, "grant permits", transactionOptions{lockTimeout: controlLockTimeout}, func(ask, askLast roundTripFunc) error {
		if err := s.lockLimitKeys(ask, b, r); err != nil {
			return err
		}
		locked, err = s.writePermits(askLast, b, r.limitKeys, s.planPermits(b, r), busy)
		return err
	})
	if err == nil {
		s.limitTimelineCache.recordTimeline(r.limitNames, r.timeline)
	}
	return locked, err
}

const (
	lockedRecheckDelay = 100 * time.Millisecond // when a limit key is checked again if the run of a step was locked
	maxOfferRounds     = 5                      // how many transactions of one call make offers to the next steps in line
	maxOfferTime       = 200 * time.Millisecond // how long one call makes such offers
)

// lockedLimitKeys holds what a transaction has read of its limit keys, which it has locked.
type lockedLimitKeys struct {
	limitKeys       []store.LimitKeyState
	requestingSteps store.PermitRequestingSteps
	timeline        string             // of the database
	limitNames      []string           // that have a row
	lockedRuns      map[uuid.UUID]bool // runs that another transaction has locked: they get no offer
}

func (r *lockedLimitKeys) limitNameArray() textArray {
	return textArray{len(r.limitKeys), func(i int) *string { return &r.limitKeys[i].Limit }}
}

func (r *lockedLimitKeys) keyArray() textArray {
	return textArray{len(r.limitKeys), func(i int) *string { return &r.limitKeys[i].Key }}
}

// lockLimitKeys locks the limit keys, gives permits back, and reads the bounds of the limits, the limit keys and the requesting steps.
// Each statement of the round trip sees what was committed before it began, so the reads see the state of the limit keys under the
// lock.
func (s *database) lockLimitKeys(ask roundTripFunc, b *store.PermitBatch, r *lockedLimitKeys) error {
	at := make(map[store.LimitKey]int, len(r.limitKeys))
	for i := range r.limitKeys {
		at[r.limitKeys[i].LimitKey] = i
	}
	limits, shut := make(map[string]store.LimitRow), make(map[string]time.Time)
	timeline := s.rewindDetector.timelineText()
	unseen, now := s.limitTimelineCache.limitsNotOnTimeline(r.limitKeys, timeline), b.Now
	if len(unseen) > 0 {
		var err error
		if now, err = s.clockInTx(ask, now); err != nil {
			return err
		}
	}
	err := ask("lock lines", func(batch *pgx.Batch) {
		batch.Queue(s.statements.limitKeyLock, r.limitNameArray(), r.keyArray(), pgTime(b.Now), timeline)
		if len(unseen) > 0 {
			batch.Queue(s.statements.permitLimitBlockAfterFailover, textArray{len(unseen), func(i int) *string { return &unseen[i] }}, timeline, pgTime(now), b.CloseDurationAfterRewind.Microseconds())
		}
		if len(b.Returns) > 0 {
			batch.Queue(s.statements.permitReturn, permitReturnArgs(b.Returns)...)
		}
		batch.Queue(s.statements.permitLimitBounds, r.limitNameArray(), b.Version, pgTime(b.WorkerStarted), pgTime(b.Now))
		s.addLimitKeyReads(batch, b, r)
	}, func(res statementResults) error {
		err := eachRow(res, func(rows pgx.Rows) error {
			var g store.LimitKey
			var l store.LimitKeyState
			err := rows.Scan(&g.Limit, &g.Key, (*timeValue)(&l.Now), (*timeValue)(&l.RateUsedUntil), (*timeValue)(&l.ClosedUntil), &l.DatabaseTimeline)
			l.LimitKey = g
			r.limitKeys[at[g]] = l
			return err
		})
		for _, sent := range []bool{len(unseen) > 0, len(b.Returns) > 0} {
			if err == nil && sent {
				_, err = res.Exec()
			}
		}
		if err != nil {
			return err
		}
		err = eachRow(res, func(rows pgx.Rows) error {
			var until time.Time
			var row store.LimitRow
			var declared, version pgtype.Text
			name, settings, err := scanLimitSettings(rows, (*timeValue)(&until), &row.IsSetByOperator, &declared, &version, &row.MayReplaceDeclared)
			row.LimitSettings, row.Declared, row.DeclaredVersion = settings, declared.String, version.String
			limits[name], shut[name] = row, until
			return err
		})
		if err != nil {
			return err
		}
		return r.readLimitKeys(res, b)
	})
	if err != nil {
		return err
	}
	r.timeline, r.limitNames = timeline, slices.Collect(maps.Keys(limits))
	for i := range r.limitKeys {
		if until := shut[r.limitKeys[i].Limit]; until.After(r.limitKeys[i].ClosedUntil) {
			r.limitKeys[i].ClosedUntil = until
		}
		d := r.limitKeys[i].SetBoundsFromRows(limits, b)
		if d == nil {
			continue
		}
		err := ask("declare a limit", func(batch *pgx.Batch) { batch.Queue(s.statements.limitDeclare, s.limitDeclarationArgs(d)...) },
			func(res statementResults) error {
				return eachRow(res, func(rows pgx.Rows) error { return rows.Scan(nil) })
			})
		if err != nil {
			return err
		}
	}
	return nil
}

func scanLimitSettings(rows pgx.Rows, more ...any) (name string, s store.LimitSettings, err error) {
	var concurrent, rate, burst int32
	var period int64
	err = rows.Scan(append([]any{&name, &concurrent, &rate, &period, &burst}, more...)...)
	return name, store.LimitSettings{Concurrent: int(concurrent), Rate: int(rate), Period: time.Duration(period) * time.Microsecond, Burst: int(burst)}, err
}

// addLimitKeyReads adds the statements that read the limit keys and the requesting steps.
func (s *database) addLimitKeyReads(batch *pgx.Batch, b *store.PermitBatch, r *lockedLimitKeys) {
	batch.Queue(s.statements.permitsOfLimitKeys, r.limitNameArray(), r.keyArray(), int32(store.MaxPermitsRead))
	if len(b.Requests) > 0 {
		batch.Queue(s.statements.permitRequestingStepsRead,
			int2Array{len(b.Requests), func(i int) int16 { return store.ShardOf(b.Requests[i].Run) }},
			uuidArray{len(b.Requests), func(i int) *uuid.UUID { return &b.Requests[i].Run }},
			textArray{len(b.Requests), func(i int) *string { return &b.Requests[i].Step }})
	}
}

// readLimitKeys reads the results of the statements of addLimitKeyReads.
func (r *lockedLimitKeys) readLimitKeys(res statementResults, b *store.PermitBatch) error {
	for i := range r.limitKeys {
		r.limitKeys[i].Permits = nil
	}
	r.requestingSteps = store.PermitRequestingSteps{HeldPermits: make(map[*store.PermitRequest]store.PermitRow), Runs: make(map[uuid.UUID]store.PermitRequestingRun)}
	err := eachRow(res, func(rows pgx.Rows) error {
		var ordinal int64
		var p store.PermitWithRun
		var status, control pgtype.Int2
		err := rows.Scan(&ordinal, (*uuidValue)(&p.Run), &p.Step, (*int16)(&p.Status), (*epochValue)(&p.Epoch), &p.Attempt, (*intValue)(&p.Units), &p.Priority,
			&p.MissedOffer, (*timeValue)(&p.ArrivedAt), (*timeValue)(&p.GrantedAt), (*timeValue)(&p.OfferedUntil),
			&status, (*epochValue)(&p.RunState.Epoch), &control, (*timeValue)(&p.LeaseUntil))
		if err != nil {
			return err
		}
		l := &r.limitKeys[ordinal-1]
		p.Limit, p.Key = l.Limit, l.Key
		p.RunState = runStateFromColumns(status, p.RunState.Epoch, control)
		p.RunLocked = r.lockedRuns[p.Run]
		l.Permits = append(l.Permits, p)
		return nil
	})
	if err != nil || len(b.Requests) == 0 {
		return err
	}
	return eachRow(res, func(rows pgx.Rows) error {
		var ordinal int64
		var epoch store.Epoch
		var p permitRowScanner
		var status, control pgtype.Int2
		var lease time.Time
		err := rows.Scan(append([]any{&ordinal, &status, (*epochValue)(&epoch), &control, (*timeValue)(&lease)}, p.scanTargets()...)...)
		if err != nil {
			return err
		}
		a := b.Requests[ordinal-1]
		r.requestingSteps.Runs[a.Run] = store.PermitRequestingRun{RunState: runStateFromColumns(status, epoch, control), LeaseUntil: lease}
		if p.limit.Valid {
			r.requestingSteps.HeldPermits[a] = p.toPermit(a.Run, a.Step)
		}
		return nil
	})
}

// planPermits plans each limit key.
func (s *database) planPermits(b *store.PermitBatch, r *lockedLimitKeys) []store.PermitPlan {
	plans := make([]store.PermitPlan, len(r.limitKeys))
	for i := range r.limitKeys {
		l := &r.limitKeys[i]
		plans[i] = l.Plan(b, &r.requestingSteps, s.rewindDetector.timelineText())
		l.RateUsedUntil, l.ClosedUntil, l.DatabaseTimeline = plans[i].RateUsedUntil, plans[i].ClosedUntil, s.rewindDetector.timelineText()
	}
	return plans
}

// writePermits writes the plans of the limit keys, and commits if ask does. The limit keys are locked, so no other transaction changes
// their counts. It adds the runs that another transaction has locked to busy, and returns the limit keys in which these runs would have
// got an offer.
func (s *database) writePermits(
	ask roundTripFunc, b *store.PermitBatch, lines []store.LimitKeyState, plans []store.PermitPlan, busy map[uuid.UUID]bool,
) (locked []store.LimitKey, err error) {
	woken := make(map[uuid.UUID]bool)
	var gone, written, offers []store.PermitRow
	for i := range plans {
		gone, written, offers = append(gone, plans[i].ToDelete...), append(written, plans[i].ToWrite...), append(offers, plans[i].ToOffer...)
	}
	n := len(lines)
	err = ask("write permits", func(batch *pgx.Batch) {
		if len(gone) > 0 {
			batch.Queue(s.statements.permitDelete, permitKeyArgs(gone)...)
		}
		if len(written) > 0 {
			batch.Queue(s.statements.permitUpsert, permitArgs(written)...)
		}
		if len(offers) > 0 {
			batch.Queue(s.statements.permitOffer, append(permitKeyArgs(offers),
				timeArray{len(offers), func(i int) *time.Time { return &offers[i].OfferedUntil }}, pgTime(b.Now), notifyChannel(s.schema))...)
		}
		batch.Queue(s.statements.limitKeyRecordGrant,
			textArray{n, func(i int) *string { return &lines[i].Limit }},
			textArray{n, func(i int) *string { return &lines[i].Key }},
			timeArray{n, func(i int) *time.Time { return &plans[i].RateUsedUntil }},
			timeArray{n, func(i int) *time.Time { return &plans[i].ClosedUntil }}, s.rewindDetector.timelineText())
	}, func(res statementResults) error {
		if len(gone) > 0 {
			if _, err := res.Exec(); err != nil { // a limit without Concurrent records nothing that is held
				return err
			}
		}
		if err := readRowCount(res, len(written), nil); err != nil {
			return err
		}
		if len(offers) > 0 {
			err := eachRow(res, func(rows pgx.Rows) error {
				var run uuid.UUID
				err := rows.Scan((*uuidValue)(&run), nil)
				woken[run] = true
				return err
			})
			if err != nil {
				return err
			}
		}
		return readRowCount(res, n, nil)
	})
	for _, p := range offers {
		if err == nil && !woken[p.Run] {
			busy[p.Run] = true
			locked = append(locked, store.LimitKey{Limit: p.Limit, Key: p.Key})
		}
	}
	return locked, err
}

func permitReturnArgs(items []store.PermitReturn) []any {
	n := len(items)
	return []any{
		int2Array{n, func(i int) int16 { return store.ShardOf(items[i].Run) }},
		uuidArray{n, func(i int) *uuid.UUID { return &items[i].Run }},
		textArray{n, func(i int) *string { return &items[i].Step }},
		epochArray{n, func(i int) store.Epoch { return items[i].Epoch }},
		int4Array{n, func(i int) int32 { return items[i].Attempt }},
		textArray{n, func(i int) *string { return &items[i].Limit }},
		textArray{n, func(i int) *string { return &items[i].Key }},
	}
}

// permitKeyArgs returns the first parameters of the statements that change permits.
func permitKeyArgs(items []store.PermitRow) []any {
	n := len(items)
	return append(make([]any, 0, 16),
		int2Array{n, func(i int) int16 { return store.ShardOf(items[i].Run) }},
		uuidArray{n, func(i int) *uuid.UUID { return &items[i].Run }},
		textArray{n, func(i int) *string { return &items[i].Step }},
		textArray{n, func(i int) *string { return &items[i].Limit }},
		textArray{n, func(i int) *string { return &items[i].Key }},
	)
}

func permitArgs(items []store.PermitRow) []any {
	n := len(items)
	return append(permitKeyArgs(items),
		int2Array{n, func(i int) int16 { return int16(items[i].Status) }},
		epochArray{n, func(i int) store.Epoch { return items[i].Epoch }},
		int4Array{n, func(i int) int32 { return items[i].Attempt }},
		int4Array{n, func(i int) int32 { return int32(items[i].Units) }},
		int2Array{n, func(i int) int16 { return items[i].Priority }},
		boolArray{n, func(i int) bool { return items[i].MissedOffer }},
		timeArray{n, func(i int) *time.Time { return &items[i].ArrivedAt }},
		timeArray{n, func(i int) *time.Time { return &items[i].GrantedAt }},
		timeArray{n, func(i int) *time.Time { return &items[i].OfferedUntil }},
	)
}

// permitRowScanner scans the columns of a permit, all of which are NULL if there is none.
type permitRowScanner struct {
	limit, key              pgtype.Text
	status, priority        pgtype.Int2
	attempt, units          pgtype.Int4
	missedOffer             pgtype.Bool
	epoch                   store.Epoch
	arrived, granted, until time.Time
}

func (p *permitRowScanner) scanTargets() []any {
	return []any{
		&p.limit, &p.key, &p.status, (*epochValue)(&p.epoch), &p.attempt, &p.units, &p.priority, &p.missedOffer,
		(*timeValue)(&p.arrived), (*timeValue)(&p.granted), (*timeValue)(&p.until),
	}
}

func (p *permitRowScanner) toPermit(run uuid.UUID, step string) store.PermitRow {
	return store.PermitRow{
		Limit: p.limit.String, Key: p.key.String, Run: run, Step: step, Status: store.PermitStatus(p.status.Int16), Epoch: p.epoch,
		Attempt: p.attempt.Int32, Units: int(p.units.Int32), Priority: p.priority.Int16, MissedOffer: p.missedOffer.Bool,
		ArrivedAt: p.arrived, GrantedAt: p.granted, OfferedUntil: p.until,
	}
}
