package durable

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/startkey"
	"github.com/seed8ec063be/durable/internal/store"
)

// KeyWaitKind tells which option made a run wait before it may begin.
type KeyWaitKind string

// The values of KeyWait.Kind.
const (
	KeyWaitSingleton KeyWaitKind = "singleton" // the run waits for the end of another run; see [Singleton]
	KeyWaitDebounce  KeyWaitKind = "debounce"  // the run waits for further starts; see [Debounce]
)

// KeyWait describes what a run that was started with [Singleton] or [Debounce] waits for before it may begin. [Engine.Get]
// returns the KeyWait of a run in [RunInfo].KeyWait.
type KeyWait struct {
	Kind KeyWaitKind
	Key  string
	// Live is the ID of the live run for whose end the run waits, and LiveStatus is the status of that live run. Live and
	// LiveStatus are empty for a debounced run, and if the live run was removed.
	Live       string
	LiveStatus Status
	// Until is the time at which the run may begin. For a debounced run, Until is the end of its quiet time if no further start
	// comes; for a singleton, the end of its [Delay]. Until is zero if neither a quiet time nor a Delay applies.
	Until time.Time
}

// String describes for people what the run waits for: for example, `waits for the end of run "a", which has its singleton key
// "tenant-7"`.
func (w *KeyWait) String() string {
	until := w.Until.UTC().Format(time.RFC3339)
	switch {
	case w.Kind == KeyWaitDebounce:
		return fmt.Sprintf("waits until %s for further starts with its debounce key %q", until, w.Key)
	case w.Live == "":
		return fmt.Sprintf("waits for a worker that lets it begin: no run with its singleton key %q is live", w.Key)
	case w.Until.IsZero():
		return fmt.Sprintf("waits for the end of run %q, which has its singleton key %q", w.Live, w.Key)
	}
	return fmt.Sprintf("waits for the end of run %q, which has its singleton key %q, and until %s", w.Live, w.Key, until)
}

// addStartKeyWaitToInfo adds what the run waits for, and the input with which it will begin, unless it may begin or has begun.
func (e *Engine) addStartKeyWaitToInfo(ctx context.Context, r *store.Run, now time.Time, info *RunInfo) error {
	row, err := e.inner.ReadWaitingInput(ctx, r)
	if err != nil || row == nil {
		return err
	}
	if row.WaitingInput != nil {
		info.Input = payload.Shown(row.WaitingInput)
	}
	info.KeyWait, err = e.newKeyWait(ctx, row, now)
	return err
}

func (e *Engine) newKeyWait(ctx context.Context, row *store.StartKeyRow, now time.Time) (*KeyWait, error) {
	live, due, err := startkey.WaitReason(row)
	if err != nil {
		return nil, err
	}
	w := &KeyWait{Kind: KeyWaitKind(row.Kind.String()), Key: row.Key}
	if row.Kind == store.StartKeyDebounce || due.After(now) {
		w.Until = due.UTC()
	}
	if live == uuid.Nil {
		return w, nil
	}
	found, err := e.inner.Store().GetRunsSelectingPayloads(ctx, []store.RunRef{{UUIDOrName: live.String()}}, store.NoPayloads)
	if err == nil && found[0] != nil && !found[0].Status.IsTerminal() {
		w.Live, w.LiveStatus = found[0].NameOrUUID(), Status(found[0].Status.String())
	}
	return w, err
}
