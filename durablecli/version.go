package durablecli

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable/schema"
)

// versions is what durable version shows.
type versions struct {
	Program        string // the main module of the program
	Version        string // of that module
	Durable        string // the version of this library
	Go             string
	SchemaPostgres int // the newest migration for PostgreSQL
	SchemaSqlite   int // the newest migration for SQLite
}

func versionCommand(f *globalFlags) []*cobra.Command {
	cmd := &cobra.Command{Use: "version", GroupID: groupMaintain, Args: cobra.NoArgs, Short: "Show the versions of the program, of the library and of the schema"}
	return []*cobra.Command{f.withoutEngine(cmd, func(_ context.Context, s *session) error {
		const module = "github.com/seed8ec063be/durable"
		v := versions{SchemaPostgres: len(schema.Postgres()), SchemaSqlite: len(schema.SQLite())}
		if info, ok := debug.ReadBuildInfo(); ok {
			v.Program, v.Version, v.Go = info.Main.Path, info.Main.Version, info.GoVersion
			v.Durable = v.Version
			for _, dep := range info.Deps {
				if dep.Path == module {
					v.Durable = dep.Version
				}
			}
		}
		return s.writeDescription(&v, v.Durable, func() []field {
			return []field{
				{label: "Program", text: v.Program + " " + v.Version},
				{label: "durable", text: v.Durable},
				{label: "Go", text: v.Go},
				{label: "Schema", text: fmt.Sprintf("PostgreSQL %d, SQLite %d", v.SchemaPostgres, v.SchemaSqlite)},
			}
		})
	})}
}

func completionCommand(f *globalFlags) []*cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	cmd := &cobra.Command{
		Use: "completion bash|zsh|fish|powershell", GroupID: groupMaintain, Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: shells,
		Short:   "Write the script that completes the commands in a shell",
		Example: "  source <(durable completion bash)",
	}
	return []*cobra.Command{f.withoutEngine(cmd, func(_ context.Context, s *session) error {
		root := s.cmd.Root()
		switch s.args[0] {
		case "bash":
			return root.GenBashCompletionV2(s.out, true)
		case "zsh":
			return root.GenZshCompletion(s.out)
		case "fish":
			return root.GenFishCompletion(s.out, true)
		}
		return root.GenPowerShellCompletionWithDesc(s.out)
	})}
}
