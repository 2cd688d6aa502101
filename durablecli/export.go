package durablecli

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

func exportCommand(f *globalFlags) []*cobra.Command {
	var dir string
	var plain bool
	cmd := &cobra.Command{
		Use: "export {ID... | -}", GroupID: groupMaintain, Args: cobra.MinimumNArgs(1),
		Short:   "Write runs with their histories as JSON, for the archive or for durabletest.Replay",
		Long:    "Write a run with its history as JSON to standard output, or several to a folder. The documents contain all inputs and\noutputs: protect them as you protect these. If the engine has a codec, they are encoded, unless --plain is given.",
		Example: "  durable export order-42 > order-42.json\n  durable list -s live -w checkout -n 50 -o id | durable export - --dir testdata/histories",
	}
	cmd.Flags().StringVar(&dir, "dir", "", "write each run to a file ID.json in this folder")
	cmd.Flags().BoolVar(&plain, "plain", false, "write payloads in clear although the engine has a codec; durabletest.Replay needs that")
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		ids, err := s.readIDs(s.args)
		if err != nil {
			return err
		}
		if len(ids) > 1 && dir == "" {
			return newUsageError("several runs are given: name a folder with --dir")
		}
		var opts []durable.ExportOption
		if plain {
			opts = append(opts, durable.DecodePayloads())
		}
		for _, id := range ids {
			document, err := s.engine.Export(ctx, id, opts...)
			if err != nil {
				return err
			}
			if dir == "" {
				return s.write(wording.EscapeJSON(string(document)) + "\n")
			}
			file := filepath.Join(dir, url.PathEscape(id)+".json") // an ID may contain slashes
			if err := os.WriteFile(file, document, 0o600); err != nil {
				return fmt.Errorf("write the export of run %q: %w", id, err)
			}
			s.writeMessage("wrote %s", file)
		}
		return nil
	})}
}
