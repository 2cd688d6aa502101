package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/seed8ec063be/durable"
)

// ledger is a folder outside of the database. It holds the effects of all orders: each execution of a step appends one line to a
// file.
type ledger struct {
	folder string
	file   *os.File
}

func openLedger(folder string) (*ledger, error) {
	f, err := os.OpenFile(filepath.Join(folder, "effects"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return &ledger{folder, f}, err
}

// effect is one line of the ledger.
type effect struct {
	order              int
	step, key, release string
}

// add records an execution of a step of an order.
func (l *ledger) add(ctx context.Context, order int, step string) error {
	_, err := fmt.Fprintf(l.file, "%d %q %q %s\n", order, step, durable.IdempotencyKey(ctx), release)
	return err
}

// read returns all effects.
func (l *ledger) read() (all []effect, err error) {
	f, err := os.Open(l.file.Name())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e effect
		if _, err := fmt.Sscanf(lines.Text(), "%d %q %q %s", &e.order, &e.step, &e.key, &e.release); err != nil {
			return nil, fmt.Errorf("line %q of the ledger: %w", lines.Text(), err)
		}
		all = append(all, e)
	}
	return all, nil
}

// correctAddresses is what somebody does about the orders with a bad address.
func (l *ledger) correctAddresses() error {
	return os.WriteFile(filepath.Join(l.folder, "addresses-are-corrected"), nil, 0o600)
}

func (l *ledger) addressesAreCorrected() bool {
	_, err := os.Stat(filepath.Join(l.folder, "addresses-are-corrected"))
	return !errors.Is(err, fs.ErrNotExist)
}
