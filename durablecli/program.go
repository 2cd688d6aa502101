package durablecli

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// rootName is the name of the command in its texts, and its actual name unless it is part of another program.
const rootName = "durable"

// embeddedAnnotation marks the command of a program with its own engine.
const embeddedAnnotation = "durable.embedded"

// nameAfterProgram gives the command of an embedding program the name of this program. A command below another command keeps its name, and
// so does a command that the program has named.
func nameAfterProgram(cmd *cobra.Command) {
	if name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"); cmd.Annotations[embeddedAnnotation] != "" && cmd.Use == rootName && !cmd.HasParent() && name != "" {
		cmd.Use = name
	}
}

// withProgramName returns a text of this library in which the commands have their names in the program: "shop durable get" or "shop get"
// in place of "durable get".
func (f *globalFlags) withProgramName(text string) string {
	path := f.root.CommandPath()
	if path == rootName || !strings.Contains(text, rootName+" ") {
		return text
	}
	var names []string
	for _, cmd := range f.root.Commands() {
		names = append(names, regexp.QuoteMeta(cmd.Name()))
	}
	calls := regexp.MustCompile(`\b` + rootName + ` (` + strings.Join(names, "|") + `)\b`)
	return calls.ReplaceAllStringFunc(text, func(call string) string { return path + strings.TrimPrefix(call, rootName) })
}

// nameProgramInHelp makes the help of all commands use their names in the program.
func (f *globalFlags) nameProgramInHelp() {
	if f.givenEngine == nil {
		return
	}
	f.root.Annotations = map[string]string{embeddedAnnotation: "true"}
	own := f.root.HelpFunc()
	f.root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.Long, cmd.Example = f.withProgramName(cmd.Long), f.withProgramName(cmd.Example)
		if parent := f.root.Parent(); parent != nil {
			parent.HelpFunc()(cmd, args)
			return
		}
		own(cmd, args)
	})
}

// describeFlagError returns the error of a flag. If the flag cannot read its value, the error says which values the flag
// accepts.
func describeFlagError(err error) error {
	unread := new(strconv.NumError)
	if !errors.As(err, &unread) {
		return err
	}
	wanted := "write a whole number, such as 10"
	switch {
	case errors.Is(unread.Err, strconv.ErrRange):
		wanted = "the number is too large"
	case unread.Func == "ParseBool":
		wanted = "write true or false"
	}
	return errors.New(strings.TrimSuffix(err.Error(), unread.Error()) + wanted)
}
