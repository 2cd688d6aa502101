package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

// twoRoles returns a database with a program's role and a stranger's role, which both may create in it.
func twoRoles(t *testing.T) (conn *pgx.Conn, program, asProgram, stranger, asStranger string) {
	t.Helper()
	url := pgtest.URL(t)
	conn = connectTo(t, url)
	database := conn.Config().Database
	program, stranger = "program_"+database, "stranger_"+database
	for _, name := range []string{program, stranger} {
		execAll(t, conn, "CREATE ROLE "+name+"; GRANT CREATE ON DATABASE "+database+" TO "+name)
	}
	t.Cleanup(func() {
		for _, sql := range []string{"DROP OWNED BY " + program + ", " + stranger + " CASCADE", "ALTER DATABASE " + database + " OWNER TO CURRENT_USER", "DROP ROLE " + program, "DROP ROLE " + stranger} {
			if _, err := conn.Exec(context.Background(), sql); err != nil {
				t.Error(err)
			}
		}
	})
	as := func(name string) string { return with(url, "options=-c%20role%3D"+name) }
	return conn, program, as(program), stranger, as(stranger)
}

// wantStranger checks that Open refuses what the stranger owns, and changes nothing.
func wantStranger(t *testing.T, conn *pgx.Conn, url string, want UntrustedOwnerError, opts ...Option) {
	t.Helper()
	count := func() (n int) {
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_class").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := count()
	s, err := openDatabase(t.Context(), url, opts...)
	if err == nil {
		_ = s.Close()
	}
	var got *UntrustedOwnerError
	if !errors.As(err, &got) || *got != want {
		t.Errorf("Open returned %v, want %+v", err, want)
	} else if text := err.Error(); !strings.Contains(text, want.Owner) || !strings.Contains(text, want.Object) || !strings.Contains(text, "OwnedBy") {
		t.Errorf("the error is %q", text)
	}
	if after := count(); after != before {
		t.Errorf("%d relations became %d", before, after)
	}
}

// TestSchemaOfAStrangerIsRefused: the owner of a schema could execute triggers and views with the rights
// of its users, such as the program or a superuser.
func TestSchemaOfAStrangerIsRefused(t *testing.T) {
	t.Run("an empty schema", func(t *testing.T) {
		conn, _, url, stranger, _ := twoRoles(t)
		execAll(t, conn, "CREATE SCHEMA durable AUTHORIZATION "+stranger)
		wantStranger(t, conn, url, UntrustedOwnerError{Schema: "durable", Owner: stranger})
	})
	t.Run("a whole one", func(t *testing.T) {
		conn, program, url, stranger, theirs := twoRoles(t)
		openAt(t, theirs, Schema("flows"))
		execAll(t, conn, "GRANT "+stranger+" TO "+program) // the stranger may do this without consent
		admin, _, _ := strings.Cut(url, "&options=")
		for _, opts := range [][]Option{{Schema("flows")}, {Schema("flows"), WithoutMigrations()}} {
			wantStranger(t, conn, url, UntrustedOwnerError{Schema: "flows", Owner: stranger}, opts...)
			wantStranger(t, conn, admin, UntrustedOwnerError{Schema: "flows", Owner: stranger}, opts...)
		}
		openAt(t, admin, Schema("flows"), OwnedBy("nobody", stranger))
	})
	t.Run("a table", func(t *testing.T) {
		conn, program, url, stranger, _ := twoRoles(t)
		execAll(t, conn, "CREATE SCHEMA durable AUTHORIZATION "+program+"; GRANT ALL ON SCHEMA durable TO "+stranger)
		execAll(t, conn, "SET ROLE "+stranger+"; CREATE TABLE durable.another (); CREATE TABLE durable.step (); RESET ROLE")
		wantStranger(t, conn, url, UntrustedOwnerError{Schema: "durable", Object: "step", Owner: stranger})
	})
	t.Run("of the database's owner", func(t *testing.T) {
		conn, _, url, other, theirs := twoRoles(t)
		execAll(t, conn, "ALTER DATABASE "+conn.Config().Database+" OWNER TO "+other)
		s := openAt(t, theirs)
		execAll(t, conn, "GRANT USAGE ON SCHEMA durable TO PUBLIC; GRANT SELECT ON durable.migration TO PUBLIC")
		openAt(t, url)
		_ = s
	})
}

// TestEncodingsOfTheDatabase: an encoding that would change names is refused; SQL_ASCII, which changes
// nothing, is not.
func TestEncodingsOfTheDatabase(t *testing.T) {
	conn := connectTo(t, pgtest.URL(t))
	for _, c := range []struct {
		encoding string
		refused  bool
	}{{"LATIN1", true}, {"SQL_ASCII", false}} {
		name := conn.Config().Database + "_" + strings.ToLower(c.encoding)
		execAll(t, conn, "CREATE DATABASE "+name+" TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C' ENCODING '"+c.encoding+"'")
		t.Cleanup(func() {
			if _, err := conn.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
				t.Error(err)
			}
		})
		url := strings.Replace(conn.Config().ConnString(), "/"+conn.Config().Database, "/"+name, 1)
		s, err := openDatabase(t.Context(), url)
		if c.refused {
			if !errors.Is(err, durable.ErrInvalidConfig) || !strings.Contains(err.Error(), c.encoding) {
				t.Errorf("%s: %v", c.encoding, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		run := pending(now(t, s))
		run.UUID, run.Name = store.NewRootIdentity("zürich → 中")
		begin(t, s, &store.StartWrite{Run: run})
		if got := row(t, s, run.UUID); got.Name != "zürich → 中" {
			t.Errorf("the name came back as %q", got.Name)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenOfAnEmptyURL(t *testing.T) {
	if _, err := openDatabase(t.Context(), ""); !errors.Is(err, durable.ErrInvalidConfig) {
		t.Errorf("got %v, want ErrInvalidConfig", err)
	}
}
