package model_test

import (
	"context"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// limitCode is what the code of a worker declares.
type limitCode struct {
	version  string
	started  time.Time // when the worker started
	settings store.LimitSettings
}

// limitRow is the row of the limit.
type limitRow struct {
	settings   store.LimitSettings // that apply; the zero value: the limit has no row
	isSet      bool                // by an operator
	declared   *limitCode          // nil: no code has declared the limit
	superseded map[string]bool     // versions that have declared the limit before a newer one
}

// anyCode returns the code of workers of three versions. Two workers have the first one.
func (l *limitCheck) anyCode() (all []*limitCode) {
	for _, version := range []string{"v1", "v1", "v2", "v3"} {
		all = append(all, &limitCode{version, base.Add(time.Duration(len(all)) * time.Second), l.anySettings()})
	}
	return all
}

// declare records the code of a worker whose step requests a permit.
func (l *limitCheck) declare(code *limitCode) {
	r := &l.row
	switch old := r.declared; {
	case old == nil:
	case old.version == code.version:
		if !code.started.After(old.started) && !old.started.After(l.now) || code.settings == old.settings {
			return
		}
	case r.superseded[code.version]:
		return
	default:
		r.superseded[old.version] = true
	}
	if r.declared = code; !r.isSet {
		l.apply(code.settings)
	}
}

// apply changes the bounds that apply.
func (l *limitCheck) apply(s store.LimitSettings) {
	if l.row.settings == s {
		return
	}
	l.row.settings = s
	for _, line := range l.lines {
		line.grants = nil
	}
}

// changeRow sets, resets or deletes the bounds.
func (l *limitCheck) changeRow() (string, call) {
	switch {
	case l.dice("sets", 2) == 0:
		l.apply(l.anySettings())
		l.row.isSet = true
		c := store.LimitChangeRequest{Name: limitName, Settings: l.row.settings, Now: l.now}
		return fmt.Sprintf("set %+v", c.Settings), func(ctx context.Context, s store.Store) error { return s.ChangeLimit(ctx, c) }
	case l.dice("resets", 2) == 0:
		if l.row.declared != nil {
			l.apply(l.row.declared.settings)
			l.row.isSet = false
		}
		return "reset the limit", func(ctx context.Context, s store.Store) error {
			_, err := s.ResetLimitSettings(ctx, store.DeleteOrResetRequest{Name: limitName, Now: l.now})
			return err
		}
	}
	l.apply(store.LimitSettings{})
	l.row = limitRow{superseded: make(map[string]bool)}
	return "delete the limit", func(ctx context.Context, s store.Store) error {
		_, err := s.DeleteLimit(ctx, store.DeleteOrResetRequest{Name: limitName})
		return err
	}
}

// checkRow compares the row with what is expected.
func (l *limitCheck) checkRow(text string) {
	all, err := l.bed.handles[l.handle()].Limits(l.ctx, l.now)
	if err != nil {
		l.diverge("Limits: %v", err)
	}
	want, got := l.row, limitRow{}
	var version string
	if want.declared != nil {
		version = want.declared.version
	}
	for i := range all {
		got.settings, got.isSet = all[i].LimitSettings, all[i].OperatorSettings != nil
		if all[i].DeclaredVersion != version || (all[i].DeclaredSettings != nil) != (want.declared != nil) || want.declared != nil && *all[i].DeclaredSettings != want.declared.settings {
			l.diverge("%s: %q has declared %+v, want %+v", text, all[i].DeclaredVersion, all[i].DeclaredSettings, want.declared)
		}
	}
	if got.settings != want.settings || got.isSet != want.isSet {
		l.diverge("%s: the limit is %+v, set by an operator: %v; want %+v, %v", text, got.settings, got.isSet, want.settings, want.isSet)
	}
}
