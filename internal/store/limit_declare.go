package store

import (
	"slices"
	"time"
)

// LimitDeclaration records what code declares for a limit. The bounds apply unless an operator has set others. The declaration of another
// version replaces the recorded one unless that version declared the limit before the recorded one did, and is one of the latest 64
// versions that did. A declaration of the same version replaces the recorded one if its worker started later than the worker that has
// declared that one, or if that worker started after Now, by a clock that was set back since.
type LimitDeclaration struct {
	Name          string
	Settings      LimitSettings
	Version       string
	WorkerStarted time.Time
	Now           time.Time
}

// LimitRow is what a store reads of the row of a limit.
type LimitRow struct {
	LimitSettings
	IsSet              bool   // by an operator
	Declared           string // LimitSettings.Text of what code declares; empty: no code has declared anything
	DeclaredVersion    string
	MayReplaceDeclared bool // a declaration of the calling worker would replace the recorded one
}

// SetBounds sets the bounds of the limit key from the rows of the limits. If a requesting step declares other bounds than those that are recorded,
// and may replace them, SetBounds returns the declaration, which the store records.
func (l *LimitKeyState) SetBounds(rows map[string]LimitRow, b *PermitBatch) *LimitDeclaration {
	row, found := rows[l.Limit]
	l.Settings, l.HasBounds = row.LimitSettings, found
	i := slices.IndexFunc(b.Requests, func(a *PermitRequest) bool { return a.Limit == l.Limit })
	if i < 0 || found && !row.MayReplaceDeclared {
		return nil
	}
	settings := b.Requests[i].Settings
	if found && row.DeclaredVersion == b.Version && row.Declared == settings.EncodeJSON() {
		return nil
	}
	if !row.IsSet {
		l.Settings = settings
	}
	l.HasBounds = true
	rows[l.Limit] = LimitRow{LimitSettings: l.Settings} // which the other keys of the limit have too
	return &LimitDeclaration{Name: l.Limit, Settings: settings, Version: b.Version, WorkerStarted: b.WorkerStarted, Now: b.Now}
}
