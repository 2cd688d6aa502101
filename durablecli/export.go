package durablecli

import (
	"context"
	"encoding/json/v2"
	"errors"
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
	cmd.Flags().StringVar(&dir, "dir", "", "write each run to a file ID.json in this folder, which is created; if the ID is too long for a file name, to UUID.json")
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
		if dir == "" {
			if len(ids) == 0 {
				return nil
			}
			document, err := s.engine.Export(ctx, ids[0], opts...) // there is one at most
			if err != nil {
				return err
			}
			return s.write(wording.EscapeJSON(string(document)) + "\n")
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("create the folder of --dir: %w", err)
		}
		var failed []error
		for _, id := range ids {
			document, err := s.engine.Export(ctx, id, opts...)
			switch {
			case err == nil:
			case isFatal(err):
				return errors.Join(append(failed, err)...)
			default: // the error concerns this run only, for example because it was deleted meanwhile
				failed = append(failed, err)
				continue
			}
			name, err := exportFileName(id, document)
			if err != nil {
				return err
			}
			file := filepath.Join(dir, name)
			if err := os.WriteFile(file, document, 0o600); err != nil {
				return fmt.Errorf("write the export of run %q: %w", id, err)
			}
			s.writeMessage("wrote %s", file)
		}
		return errors.Join(failed...)
	})}
}

// longestFileName is how many bytes the file systems allow for the name of a file.
const longestFileName = 255

// exportFileName returns the name of the file for the export of a run: the ID, escaped because it may contain slashes, or the run's UUID if that is
// too long.
func exportFileName(id string, document []byte) (string, error) {
	if name := url.PathEscape(id) + ".json"; len(name) <= longestFileName {
		return name, nil
	}
	var exported struct {
		Run struct {
			RunID string `json:"run_id"`
		} `json:"run"`
	}
	if err := json.Unmarshal(document, &exported); err != nil {
		return "", fmt.Errorf("read the export of run %q: %w", id, err)
	}
	return exported.Run.RunID + ".json", nil
}
