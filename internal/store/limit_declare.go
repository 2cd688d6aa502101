package store

import (
	"slices"
	"time"
)

// LimitDeclaration records the bounds that code declares for a limit. The declared bounds apply unless an operator has set other bounds.
// The declaration of a new version of the code replaces the recorded declaration. The declaration of an older version is ignored if this
// version is one of the latest 64 versions that declared the limit before the recorded version did. A declaration of the recorded version
// replaces the recorded declaration if the declaring worker started later than the worker that made the recorded declaration. If the worker
// of the recorded declaration started after Now, because the clock was set back since, any worker of the recorded version replaces the
// declaration.
type LimitDeclaration struct {
	Name          string
	Settings      LimitSettings
	Version       string
	WorkerStarted time.Time
	Now           time.Time
}

// LimitRow holds what a store reads from the row of a limit.
type LimitRow struct {
	LimitSettings
	IsSetByOperator    bool   // an operator has set the bounds
	Declared           string // the settings that code declares, as LimitSettings.EncodeJSON encodes them; empty: no code has declared any
	DeclaredVersion    string
	MayReplaceDeclared bool // a declaration of the calling worker would replace the recorded one
}

// SetBoundsFromRows sets the bounds of the limit key from the rows of the limits. If a requesting step declares bounds that differ from the
// recorded bounds and may replace them, SetBoundsFromRows returns the declaration, which the store then records.
func (l *LimitKeyState) SetBoundsFromRows(rows map[string]LimitRow, b *PermitBatch) *LimitDeclaration {
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
	if !row.IsSetByOperator {
		l.Settings = settings
	}
	l.HasBounds = true
	rows[l.Limit] = LimitRow{LimitSettings: l.Settings} // for the other keys of the limit
	return &LimitDeclaration{Name: l.Limit, Settings: settings, Version: b.Version, WorkerStarted: b.WorkerStarted, Now: b.Now}
}
