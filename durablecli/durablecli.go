// Package durablecli is the command line of durable, as a cobra command.
//
// The program durable, in cmd/durable, only calls this package. It opens the database that --url, --file or DATABASE_URL names. A
// program with workflows of its own embeds the same commands with its engine:
//
//	func main() {
//		engine, err := durable.New(store, durable.Config{Workflows: workflows})
//		...
//		os.Exit(durablecli.Execute(context.Background(), durablecli.Command(engine)))
//	}
//
// Data is written to standard output, and messages to standard error. The exit codes are the constants of this package.
package durablecli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// Command returns the command durable with all its subcommands, on the given engine. With an engine, the flags that name a
// database do not exist. If the engine is nil, each command opens the database that --url, --file or the environment variable
// DATABASE_URL names, and closes the database when the command ends.
//
// Pass the command to [Execute], or add it to a command of your own; then [ExitCode] returns the exit code for the error of your
// command's Execute. The name of the command is durable. With an engine, Execute gives the command the name of the program, unless
// you have set its field Use.
func Command(e *durable.Engine) *cobra.Command {
	return newRootCommand(&globalFlags{givenEngine: e, clock: time.Now})
}

// newRootCommand returns the command with the given frame.
func newRootCommand(f *globalFlags) *cobra.Command {
	root := &cobra.Command{
		Use:   rootName,
		Short: "Operate the runs of a database: look, act, migrate, diagnose",
		Long: "Operate the runs of one database.\n\n" +
			"Data is written to standard output, and messages to standard error. Exit codes: 0 done, 1 error, 2 usage,\n" +
			"3 not found, 4 the workflow failed, 5 the database cannot be used, 6 the code does not fit live runs, 130 interrupted.",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return newUsageError("%w; see %s --help", describeFlagError(err), cmd.CommandPath())
	})
	f.root = root
	f.nameProgramInHelp()
	f.addGlobalFlags(root)
	root.AddGroup(&cobra.Group{ID: groupLook, Title: "Look:"}, &cobra.Group{ID: groupAct, Title: "Act:"}, &cobra.Group{ID: groupMaintain, Title: "Deploy and care:"})
	root.SetHelpCommandGroupID(groupMaintain)
	for _, add := range commandConstructors {
		root.AddCommand(add(f)...)
	}
	return root
}

// The groups of commands in the help.
const (
	groupLook     = "look"
	groupAct      = "act"
	groupMaintain = "care"
)

// commandConstructors returns the commands of each noun or verb.
var commandConstructors = []func(*globalFlags) []*cobra.Command{
	listCommand, getCommand, historyCommand, treeCommand, graphCommand, countsCommand, failuresCommand, eventsCommand, queuesCommand, limitsCommand,
	schedulesCommand, workersCommand, auditCommand, topCommand, uiCommand,
	startCommand, signalCommand, controlCommands, retryCommand, deleteCommand, changeCommands, queueCommand, limitCommand, scheduleCommand,
	workerCommand, repairStepCommands, forkCommand, migrateCommand, preflightCommand, replayCommand, doctorCommand, exportCommand, pruneCommand, completionCommand, versionCommand,
}

// Execute executes the command with the arguments of the process, and returns the exit code for os.Exit. It writes an error to the
// command's standard error. SIGINT and SIGTERM interrupt the command; a second signal ends the process.
func Execute(ctx context.Context, cmd *cobra.Command) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the next signal has its usual effect
	nameAfterProgram(cmd)
	err := cmd.ExecuteContext(ctx)
	code := ExitCode(err)
	if err != nil && code != ExitInterrupted && !errors.Is(err, errSilent) {
		fmt.Fprintf(cmd.ErrOrStderr(), "Error: %s\n", wording.EscapeLines(err.Error()))
	}
	return code
}
