package durablecli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durablecli"
)

// A value that a flag cannot read is refused in a sentence with the flag, the value and what is wanted.
func TestFlagErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"queue", "set", "mail", "--depth", "abc"}, `invalid argument "abc" for "--depth" flag: write a whole number, such as 10; see durable queue set --help`},
		{[]string{"queue", "set", "mail", "--depth", "99999999999999999999"}, `for "--depth" flag: the number is too large; see`},
		{[]string{"queue", "set", "mail", "--closed=maybe"}, `invalid argument "maybe" for "--closed" flag: write true or false; see`},
		{[]string{"schedule", "set", "nightly", "--priority", "high"}, `invalid argument "high" for "--priority" flag: write a whole number, such as 10; see`},
		{[]string{"schedule", "set", "nightly", "--every", "often"}, `for "--every" flag: the duration "often" is not understood: write it as 90s, 45m, 12h, 2d or 1d12h; see`},
		{[]string{"top", "--interval", "often"}, `for "--interval" flag: the duration "often" is not understood: write it as`},
		{[]string{"limit", "set", "bank", "--concurrent", "1.5"}, `invalid argument "1.5" for "--concurrent" flag: write a whole number, such as 10; see`},
	} {
		if got := command(t, c.args...); got.code != durablecli.ExitUsage || !strings.Contains(got.err, c.want) || strings.Contains(got.err, "strconv") {
			t.Errorf("durable %q exits with %d, and does not say %q: %s", c.args, got.code, c.want, got.err)
		}
	}
}

// In another program, usage, examples, errors and advice have the name with which the command is called there.
func TestNameOfTheProgram(t *testing.T) {
	p := onFile(t)
	e, err := durable.New(p.store, durable.Config{Workflows: []durable.Definition{order}})
	if err != nil {
		t.Fatal(err)
	}
	own := func() *cobra.Command { return durablecli.Command(e) }
	below := func() *cobra.Command {
		root := &cobra.Command{Use: "shop", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(durablecli.Command(e))
		return root
	}
	binary := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	for _, c := range []struct {
		command func() *cobra.Command
		prefix  []string
		name    string
	}{{own, nil, binary}, {below, []string{"durable"}, "shop durable"}} {
		for _, args := range [][]string{
			{"--help"}, {"start", "--help"}, {"list", "--help"}, {"history", "--help"}, {"preflight", "--help"}, {"queues", "--help"}, {"get"}, {"top", "-o", "id"}, {"queue", "set", "mail", "--depth", "x"}, {"doctor"},
		} {
			var out bytes.Buffer
			cmd := c.command()
			cmd.SetArgs(append(c.prefix, args...))
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			durablecli.Execute(within(t), cmd)
			text := out.String()
			if args[0] == "doctor" { // the engine cannot check the settings of the database; the program durable does
				text = strings.ReplaceAll(text, "call durable doctor with --url", "")
			}
			for line := range strings.Lines(text) {
				rest := strings.ReplaceAll(line, c.name, "")
				for _, sub := range cmdNames(e) {
					if strings.Contains(rest, "durable "+sub) {
						t.Errorf("%s %q: %s", c.name, args, line)
					}
				}
			}
			if !strings.Contains(text, c.name) && args[0] != "doctor" {
				t.Errorf("%s %q does not name the program: %s", c.name, args, text)
			}
		}
	}
	if cmd := own(); cmd.Name() != "durable" {
		t.Errorf("a command that is to be added to another is called %s", cmd.Name())
	}
	named := own()
	named.Use = "payouts"
	named.SetArgs([]string{"get"})
	var errs bytes.Buffer
	named.SetErr(&errs)
	if durablecli.Execute(within(t), named); !strings.Contains(errs.String(), "write payouts get ID") {
		t.Errorf("a name that the program has set is not used: %s", errs.String())
	}
}

// cmdNames returns the names of the subcommands.
func cmdNames(e *durable.Engine) (names []string) {
	for _, cmd := range durablecli.Command(e).Commands() {
		names = append(names, cmd.Name())
	}
	return names
}
