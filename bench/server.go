package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

// server holds the place for databases: a PostgreSQL server that lives as long as this process, or
// a folder for SQLite files.
type server struct {
	store  string
	pg     *pgtest.Server // nil for SQLite
	admin  *pgx.Conn      // connected to a database in which nothing is measured
	folder string
}

// provide starts a server, or creates a folder.
func provide(ctx context.Context, store string, maxConns int) (*server, error) {
	s := &server{store: store}
	if store != "postgres" {
		folder, err := os.MkdirTemp("", "durable-bench-")
		s.folder = folder
		return s, err
	}
	var err error
	// The data is on a disk, not in memory, so that a sync has its real cost. All other settings
	// are the defaults; the two sizes are printed with the figures.
	s.pg, err = pgtest.Start(ctx, pgtest.Options{Dir: os.TempDir(), Settings: map[string]string{
		"shared_buffers": "1GB", "max_wal_size": "8GB", "max_connections": strconv.Itoa(maxConns),
	}})
	if err != nil {
		return nil, err
	}
	if s.admin, err = pgx.Connect(ctx, s.pg.URL()); err != nil {
		return nil, errors.Join(err, s.pg.Close())
	}
	if err := s.prepareWAL(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// preparedWALFiles is the number of WAL files, of 16 MB each, that are written before the first
// measurement.
const preparedWALFiles = 64

// prepareWAL gives the server the WAL files of a server that has been in use. A new server creates each
// file, fills it with zeros and syncs it while every commit waits. Later it reuses the files that a
// checkpoint has released.
func (s *server) prepareWAL(ctx context.Context) error {
	for range preparedWALFiles {
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

// settings returns the settings that the figures depend on.
func (s *server) settings(ctx context.Context) (text string, err error) {
	if s.pg == nil {
		return "journal_mode=WAL synchronous=" + s.level(), nil
	}
	err = s.admin.QueryRow(ctx, statement("settings.postgres.sql")).Scan(&text)
	return text, err
}

// level returns SQLite's name for the durability of a commit (synchronous).
func (s *server) level() string {
	_, level, _ := strings.Cut(s.store, "-")
	return strings.ToUpper(level)
}

// site holds two databases: one with durable's tables, and one with the tables of the designs that
// durable is compared with. The transactions of each database can be counted.
type site struct {
	*server
	name         string
	address      string // durable's database: a URL or a file
	rivalAddress string // the other database
}

// site creates the databases. The first store that is opened creates durable's tables.
func (s *server) site(ctx context.Context, name string) (*site, error) {
	at := &site{server: s, name: name}
	if s.pg == nil {
		at.address, at.rivalAddress = filepath.Join(s.folder, name+".db"), filepath.Join(s.folder, name+"-rivals.db")
		db, err := at.file(at.rivalAddress)
		if err != nil {
			return nil, err
		}
		_, err = db.ExecContext(ctx, statement("setup.sqlite.sql"))
		return at, errors.Join(err, db.Close())
	}
	for database, address := range map[string]*string{name: &at.address, name + "_rivals": &at.rivalAddress} {
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
	conn, err := pgx.Connect(ctx, at.rivalAddress)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement("setup.postgres.sql"))
	return at, err
}

// remove drops the databases, so that they do not affect the next mode.
func (at *site) remove() error {
	if at.pg == nil {
		files, err := filepath.Glob(filepath.Join(at.folder, at.name+"*"))
		for _, name := range files {
			err = errors.Join(err, os.RemoveAll(name))
		}
		return err
	}
	ctx := context.Background() // the databases are dropped even after an interrupt
	_, err := at.admin.Exec(ctx, naming("drop.postgres.sql", at.name))
	_, more := at.admin.Exec(ctx, naming("drop.postgres.sql", at.name+"_rivals"))
	return errors.Join(err, more)
}

// open opens durable's database, and creates its tables if they do not exist.
func (at *site) open(ctx context.Context) (durable.Store, error) {
	return openStore(ctx, at.store, at.address)
}

// openStore opens a store of this kind as a user would.
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

// file opens an SQLite file with one connection, with the same driver and settings as the writer of
// package sqlite.
func (s *server) file(name string) (*sql.DB, error) {
	u := url.URL{Scheme: "file", Path: name, RawQuery: url.Values{
		"_txlock": {"immediate"}, "_busy_timeout": {"10000"}, "_synchronous": {s.level()},
		"_pragma": {"journal_mode(wal)", "cache_size(-16384)", "temp_store(memory)", "wal_autocheckpoint(4000)"},
	}.Encode()}
	db, err := sql.Open("sqlite", u.String()) // package sqlite registers the driver
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// settle writes earlier measurements' data to disk, so that it does not slow down the next
// measurement.
func (at *site) settle(ctx context.Context) error {
	if at.pg != nil {
		_, err := at.admin.Exec(ctx, statement("checkpoint.postgres.sql"))
		return err
	}
	for _, name := range []string{at.address, at.rivalAddress} {
		if _, err := os.Stat(name); err != nil {
			continue // the file does not exist yet
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
