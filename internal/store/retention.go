package store

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/google/uuid"
)

// MinRetention is how long ago a run must have ended before a store deletes its rows without waiting for writes under way. MinRetention is
// longer than any statement takes. So a write of a superseded epoch that began before the run ended has been committed or rolled back.
const MinRetention = time.Minute

// RetentionStore deletes ended runs, superseded generations and old events.
type RetentionStore interface {
	// TreeToDelete returns the runs of a tree and their superseded generations. The tree begins at the given run, or at the generation with
	// the given archive ID. TreeToDelete returns nothing if there is no such run or generation.
	TreeToDelete(ctx context.Context, root uuid.UUID) ([]TreeNode, error)

	// DeleteTrees deletes trees of runs with all their rows, except events, in one transaction, and sets the outcome of each tree.
	// DeleteTrees first locks the ended runs of the trees, without waiting for locks. DeleteTrees then reads the rows of the trees, and
	// deletes what DeleteTreeRequest.Plan returns for these rows. A repeated call of DeleteTrees changes nothing.
	DeleteTrees(ctx context.Context, d *DeleteTreesRequest) error

	// EndedTrees reads a part of the runs of a shard, and returns the root runs in that part that ended before the given time. A store that
	// does not store shards separately returns the runs of all shards for shard 0, and none for other shards.
	EndedTrees(ctx context.Context, q EndedTreesQuery) (EndedTrees, error)

	// OldGenerations reads a part of the superseded generations of a shard, in the way in which EndedTrees reads runs.
	OldGenerations(ctx context.Context, q OldGenerationsQuery) (OldGenerations, error)

	// DeleteEvents deletes some of the oldest events, and returns how many it has deleted. DeleteEvents stops at the first event that is
	// not older than the given time. So DeleteEvents deletes only the first of the events that Events returns.
	DeleteEvents(ctx context.Context, before time.Time) (int, error)
}

// EndedTreesQuery selects root runs that ended long ago. A run whose parent does not exist counts as a root, and so does a detached
// child of a superseded generation.
type EndedTreesQuery struct {
	Shard         int16
	After         uuid.UUID // the last run that was read before; zero: begin with the first one
	CreatedBefore time.Time // runs whose UUIDs are from this time or later are not read
	EndedBefore   time.Time
	Limit         int // the largest number of runs that are read
}

// EndedTrees holds what RetentionStore.EndedTrees returns.
type EndedTrees struct {
	Roots []EndedRoot
	Next  uuid.UUID // for the next query; zero: there is no further run
}

// EndedRoot is a root run that has ended.
type EndedRoot struct {
	UUID     uuid.UUID
	Workflow string
	Status   Status
	Epoch    Epoch
	EndedAt  time.Time
}

// OldGenerationsQuery selects generations of runs that were superseded long ago. OldGenerationsQuery never selects the newest superseded
// generation of a run.
type OldGenerationsQuery struct {
	Shard            int16
	AfterRun         uuid.UUID // the generation that was read last before; zero: begin with the first one
	AfterNumber      int32
	SupersededBefore time.Time // when they were superseded
	Limit            int
}

// OldGenerations holds what RetentionStore.OldGenerations returns.
type OldGenerations struct {
	Generations []OldGeneration
	NextRun     uuid.UUID // for the next query; zero: there is no further generation
	NextNumber  int32
}

// OldGeneration is a superseded generation of a run.
type OldGeneration struct {
	Run       uuid.UUID
	Number    int32
	ArchiveID uuid.UUID
	Workflow  string
}

// FirstUUIDAt returns a UUID that is lower than the UUID of every run that was created at the given time or later.
func FirstUUIDAt(at time.Time) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[:8], uint64(max(0, at.UnixMilli()))<<16)
	return id
}

// TreeNode is one node of a tree that may be deleted: a run, or a superseded generation of a run.
type TreeNode struct {
	UUID   uuid.UUID     // of the run, or the archive ID of the generation
	Parent uuid.NullUUID // of a run: its parent's UUID, or the archive ID of its parent's superseded generation; of a generation: the UUID of its run

	Generation      int32 // the number of the generation; zero: a run
	Status          Status
	Epoch           Epoch
	EndedAt         time.Time // of a generation: when it was superseded
	Detached        bool
	HoldsQueuePlace bool // an admission has not yet taken back its place in a queue
}

// DeleteTreesRequest is the argument of RetentionStore.DeleteTrees.
type DeleteTreesRequest struct {
	Trees []DeleteTreeRequest
	Now   time.Time
	// AwaitWriters makes DeleteTrees first wait until writes under way have ended, as a claim of a run with a lost lease does. Only with
	// AwaitWriters may DeleteTreeRequest.EndedBeforeCall contain runs.
	AwaitWriters bool

	// Actor and Reason are those of the person who has requested the deletion. WithEvents makes the store write an event for the root of
	// each tree.
	Actor      string
	Reason     string
	WithEvents bool

	// ReplyLost is set if an earlier try may have been committed, because it returned ErrUnavailable. The caller and DeleteTrees set it.
	// An outcome AlreadyRecorded then does not tell whether this call or another one has deleted the tree.
	ReplyLost bool
}

// DeleteTreeRequest deletes one tree.
type DeleteTreeRequest struct {
	Root        uuid.UUID // the run, or the archive ID of a superseded generation
	Name        string    // of the run, for its event
	Epoch       Epoch     // of the root when it was read
	EndedBefore time.Time // a tree is deleted only if all its runs ended before this time; zero: at any time
	// EndedBeforeCall has runs that had ended before the call of DeleteTrees, with their epochs, if AwaitWriters is set. All other runs of
	// the tree must have ended at least MinRetention ago.
	EndedBeforeCall map[uuid.UUID]Epoch
	// DeletableUUIDs has the runs and generations that may be deleted. If DeletableUUIDs is nil, all runs and generations of the tree may
	// be deleted.
	DeletableUUIDs map[uuid.UUID]bool

	// Outcome is Written if the tree was deleted, AlreadyRecorded if its root does not exist, and Locked if another transaction has locked
	// one of its runs. Outcome is Fenced if a run of the tree prevents the deletion; Blocker is then that run.
	Outcome WriteOutcome
	Blocker TreeNode
	// DeletedRunCount and DeletedGenerationCount are the numbers of runs and of superseded generations that were deleted.
	DeletedRunCount, DeletedGenerationCount int
}

// DeletionPlan tells which rows of a tree are deleted.
type DeletionPlan struct {
	Runs        []uuid.UUID // in the order of CompareUUIDsByShard
	Generations []TreeNode
}

// Plan sets the outcome of the deletion of a tree, and returns the rows to delete. The argument nodes holds at least all rows of the tree.
// The function locked reports whether this transaction has locked an ended run.
//
// The tree consists of the root and, recursively, of the children that are not detached, including children of superseded generations. The
// tree is deleted as a whole or not at all. A detached child is deleted with its parent if the child's own tree can be deleted too.
// Otherwise the detached child stays with all its descendants, and from then on counts as a root.
//
// A detached child of a superseded generation already counts as a root, and always stays. If the root is a generation, all detached
// runs stay: EndedBefore is then the time for generations, and tells nothing about runs that outlive them.
func (d *DeleteTreeRequest) Plan(nodes []TreeNode, now time.Time, locked func(uuid.UUID) bool) (plan DeletionPlan) {
	t := deletionTree{deletion: d, now: now, isLocked: locked, children: make(map[uuid.UUID][]int, len(nodes)), nodes: nodes}
	root := -1
	for i := range nodes {
		if nodes[i].UUID == d.Root {
			root = i
		} else if p := nodes[i].Parent; p.Valid {
			t.children[p.UUID] = append(t.children[p.UUID], i)
		}
	}
	d.DeletedRunCount, d.DeletedGenerationCount, d.Blocker = 0, 0, TreeNode{}
	if root < 0 {
		d.Outcome = AlreadyRecorded
		return plan
	}
	t.rootIsGeneration = nodes[root].Generation > 0
	if d.Outcome = t.collectTree(root, &plan); d.Outcome != Written {
		return DeletionPlan{}
	}
	slices.SortFunc(plan.Runs, CompareUUIDsByShard)
	d.DeletedRunCount, d.DeletedGenerationCount = len(plan.Runs), len(plan.Generations)
	return plan
}

// deletionTree is the tree of one call of Plan.
type deletionTree struct {
	deletion *DeleteTreeRequest
	nodes    []TreeNode
	children map[uuid.UUID][]int
	now      time.Time
	isLocked func(uuid.UUID) bool

	rootIsGeneration bool // the root of the deletion is a superseded generation
}

// collectTree adds the tree at a node to the plan and returns Written. If the tree cannot be deleted, collectTree does not change the
// plan, and returns the outcome that says why.
func (t *deletionTree) collectTree(root int, plan *DeletionPlan) WriteOutcome {
	before := *plan
	var detached []int
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		n := &t.nodes[queue[0]]
		if outcome := t.checkNodeDeletable(n); outcome != Written {
			if t.deletion.Root == t.nodes[root].UUID {
				t.deletion.Blocker = *n
			}
			*plan = before
			return outcome
		}
		if n.Generation > 0 {
			plan.Generations = append(plan.Generations, *n)
		} else {
			plan.Runs = append(plan.Runs, n.UUID)
		}
		for _, i := range t.children[n.UUID] {
			switch {
			case !t.nodes[i].Detached:
				queue = append(queue, i)
			case n.Generation == 0 && !t.rootIsGeneration:
				detached = append(detached, i)
			}
		}
	}
	for _, i := range detached {
		t.collectTree(i, plan) // a detached child that cannot be deleted stays
	}
	return Written
}

// checkNodeDeletable returns Written if the node can be deleted, and otherwise why not.
func (t *deletionTree) checkNodeDeletable(n *TreeNode) WriteOutcome {
	if t.deletion.DeletableUUIDs != nil && !t.deletion.DeletableUUIDs[n.UUID] {
		return Fenced
	}
	if n.Generation > 0 {
		if n.UUID == t.deletion.Root && !t.endedLongEnough(n) {
			return Fenced
		}
		return Written // a superseded generation never changes, and is older than the end of its run
	}
	epoch, quiet := t.deletion.EndedBeforeCall[n.UUID]
	quiet = quiet && epoch == n.Epoch || n.EndedAt.Before(t.now.Add(-MinRetention))
	switch {
	case !n.Status.IsTerminal(), n.HoldsQueuePlace, !t.endedLongEnough(n), !quiet, n.UUID == t.deletion.Root && n.Epoch != t.deletion.Epoch:
		return Fenced
	case !t.isLocked(n.UUID):
		return Locked
	}
	return Written
}

// endedLongEnough reports whether the node ended long enough ago.
func (t *deletionTree) endedLongEnough(n *TreeNode) bool {
	return t.deletion.EndedBefore.IsZero() || n.EndedAt.Before(t.deletion.EndedBefore)
}
