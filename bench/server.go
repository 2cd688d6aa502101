package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

// server is where databases are made: a PostgreSQL that lives as long as this process, or
// a folder for SQLite's files.
type server struct {
	store  string
	pg     *pgtest.Server // nil for SQLite
	admin  *pgx.Conn      // to a database in which nothing is measured
	folder string
}

// provide starts a server, or makes a folder.
func provide(ctx context.Context, store string) (*server, error) {
	s := &server{store: store}
	if store != "postgres" {
		folder, err := os.MkdirTemp("", "durable-bench-")
		s.folder = folder
		return s, err
	}
	var err error
	// On the disk, not in memory, so that a sync is one. All else is as in a default
	// installation; the two sizes are stated with the figures.
	s.pg, err = pgtest.Start(ctx, pgtest.Options{Dir: os.TempDir(), Settings: map[string]string{
		"shared_buffers": "1GB", "max_wal_size": "8GB",
	}})
	if err != nil {
		return nil, err
	}
	if s.admin, err = pgx.Connect(ctx, s.pg.URL()); err != nil {
		return nil, errors.Join(err, s.pg.Close())
	}
	if err := s.season(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// seasoning is how many files of the log, of 16 MB each, are written before anything is
// measured.
const seasoning = 64

// season gives the server the log of one that has been at work: a new server makes each file of
// it, fills it with zeros and syncs it while every commit waits; later it takes those that a
// checkpoint has set free.
func (s *server) season(ctx context.Context) error {
	for range seasoning {
		if _, err := s.admin.Exec(ctx, statement("season.postgres.sql")); err != nil {
			return err
		}
	}
	_, err := s.admin.Exec(ctx, statement("checkpoint.postgres.sql"))
	return err
}

func (s *server) close() error {
	if s.pg == nil {
		return os.RemoveAll(s.folder)
	}
	return errors.Join(s.admin.Close(context.Background()), s.pg.Close())
}

// settings are those that the figures depend on.
func (s *server) settings(ctx context.Context) (text string, err error) {
	if s.pg == nil {
		return "journal_mode=WAL synchronous=" + s.level(), nil
	}
	err = s.admin.QueryRow(ctx, statement("settings.postgres.sql")).Scan(&text)
	return text, err
}

// level is SQLite's word for what a commit waits for.
func (s *server) level() string {
	_, level, _ := strings.Cut(s.store, "-")
	return strings.ToUpper(level)
}

// site is a pair of databases: one with durable's tables, and one beside it with the tables of what
// durable is compared with, so that the transactions of each can be counted.
type site struct {
	*server
	name    string
	address string // of durable's database: a URL or a file
	rivals  string // of the other one
}

// site makes the databases. The tables of durable come with the first store that is
// opened.
func (s *server) site(ctx context.Context, name string) (*site, error) {
	at := &site{server: s, name: name}
	if s.pg == nil {
		at.address, at.rivals = filepath.Join(s.folder, name+".db"), filepath.Join(s.folder, name+"-rivals.db")
		db, err := at.file(at.rivals)
		if err != nil {
			return nil, err
		}
		_, err = db.ExecContext(ctx, statement("setup.sqlite.sql"))
		return at, errors.Join(err, db.Close())
	}
	for database, address := range map[string]*string{name: &at.address, name + "_rivals": &at.rivals} {
		if _, err := s.admin.Exec(ctx, naming("create.postgres.sql", database)); err != nil {
			return nil, err
		}
		u, err := url.Parse(s.pg.URL())
		if err != nil {
			return nil, err
		}
		u.Path = "/" + database
		*address = u.String()
	}
	conn, err := pgx.Connect(ctx, at.rivals)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement("setup.postgres.sql"))
	return at, err
}

// remove drops the databases: the next mode has the disk for itself.
func (at *site) remove() error {
	if at.pg == nil {
		files, err := filepath.Glob(filepath.Join(at.folder, at.name+"*"))
		for _, name := range files {
			err = errors.Join(err, os.RemoveAll(name))
		}
		return err
	}
	ctx := context.Background() // also after an interrupt
	_, err := at.admin.Exec(ctx, naming("drop.postgres.sql", at.name))
	_, more := at.admin.Exec(ctx, naming("drop.postgres.sql", at.name+"_rivals"))
	return errors.Join(err, more)
}

// open opens durable's database, and makes its tables.
func (at *site) open(ctx context.Context) (durable.Store, error) {
	return openStore(ctx, at.store, at.address)
}

// openStore is what a user would write for that kind of store.
func openStore(ctx context.Context, store, address string) (durable.Store, error) {
	switch store {
	case "postgres":
		return postgres.Open(ctx, address)
	case "sqlite-full":
		return sqlite.Open(address)
	case "sqlite-normal":
		return sqlite.Open(address, sqlite.Synchronous(sqlite.Normal))
	}
	return nil, fmt.Errorf("the store %q is not known", store)
}

// file opens an SQLite file with one connection, with the driver and the settings that
// package sqlite has for its writer.
func (s *server) file(name string) (*sql.DB, error) {
	u := url.URL{Scheme: "file", Path: name, RawQuery: url.Values{
		"_txlock": {"immediate"}, "_busy_timeout": {"10000"}, "_synchronous": {s.level()},
		"_pragma": {"journal_mode(wal)", "cache_size(-16384)", "temp_store(memory)", "wal_autocheckpoint(4000)"},
	}.Encode()}
	db, err := sql.Open("sqlite", u.String()) // package sqlite has brought the driver
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// settle writes out what was measured before, so that it is nobody else's burden.
func (at *site) settle(ctx context.Context) error {
	if at.pg != nil {
		_, err := at.admin.Exec(ctx, statement("checkpoint.postgres.sql"))
		return err
	}
	for _, name := range []string{at.address, at.rivals} {
		if _, err := os.Stat(name); err != nil {
			continue // not made yet
		}
		db, err := at.file(name)
		if err != nil {
			return err
		}
		var busy, logged, moved int
		err = db.QueryRowContext(ctx, statement("checkpoint.sqlite.sql")).Scan(&busy, &logged, &moved)
		if err = errors.Join(err, db.Close()); err != nil {
			return err
		}
	}
	return nil
}
