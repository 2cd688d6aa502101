package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
)

// emptyCluster is a cluster that has never been started. Test binaries that start several servers copy it, because a copy
// takes a tenth of the time of initdb. Main removes it.
var emptyCluster struct {
	mu     sync.Mutex
	starts int
	server *Server // nil until the second server is started
}

// newCluster creates the data directory of the server.
func (s *Server) newCluster(ctx context.Context) error {
	if !shared.main { // nothing would remove the cluster to copy
		return s.initdb(ctx)
	}
	from, err := clusterToCopy(ctx, s)
	if err != nil {
		return err
	}
	if from == nil {
		return s.initdb(ctx)
	}
	s.password = from.password
	cmd := exec.CommandContext(ctx, "cp", "-Rp", from.dataPath(), s.dataPath())
	cmd.Dir = s.folder.path
	cmd.SysProcAttr = childAttributes(s.account)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("copy an empty cluster: %w\n%s", err, tail(out))
	}
	return nil
}

// clusterToCopy returns the empty cluster, or nil for the first server of this process and for a server of other programs.
func clusterToCopy(ctx context.Context, s *Server) (*Server, error) {
	emptyCluster.mu.Lock()
	defer emptyCluster.mu.Unlock()
	if emptyCluster.starts++; emptyCluster.starts == 1 {
		return nil, nil
	}
	if emptyCluster.server == nil {
		folder, err := newFolder("", s.account)
		if err != nil {
			return nil, err
		}
		empty := &Server{bin: s.bin, account: s.account, folder: folder, password: s.password}
		if err := empty.initdb(ctx); err != nil {
			return nil, errors.Join(err, folder.remove())
		}
		emptyCluster.server = empty
	}
	if emptyCluster.server.bin != s.bin {
		return nil, nil
	}
	return emptyCluster.server, nil
}

// removeEmptyCluster removes the cluster that newCluster copies.
func removeEmptyCluster() error {
	emptyCluster.mu.Lock()
	defer emptyCluster.mu.Unlock()
	if emptyCluster.server == nil {
		return nil
	}
	empty := emptyCluster.server
	emptyCluster.server = nil
	return empty.folder.remove()
}
