# `make` alone explains itself.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
# What to test, and further flags: make test PKG=./pkg/batch/tx/... FLAGS='-run Nested -v'
PKG ?= ./...
FLAGS ?=
# What `make soak` counts: kills of each kind and database, races of two processes, random cases,
# writers of files that are frozen, workers with tasks that are killed or frozen.
KILLS ?= 500
RACES ?= 100
OUTAGES ?= 100
SOAK ?= 10000
FROZEN ?= 200
TASK_FAULTS ?= 200
# Kills and freezes of each writer in an object store, in `make soak`.
PLACES ?= 50
# How long `make fuzz` looks for texts on which a property does not hold, for each target.
FUZZ ?= 10m
# The seed of random cases in `make test` and `make quick`: a run that gates a change does not fail
# by chance of another change's fault. SEED=0 is another seed each time, as in `make soak`.
# Only results of this one are repeated from Go's cache, which does not see the seed.
SEED ?= 1
ANEW := $(if $(filter 1,$(SEED)),,-count=1)
# What `make bench` takes: rows of which each workload has a share, and measured rounds.
SIZE ?= 200000
ROUNDS ?= 3
# Tests of a package side by side, and packages: on two cores most of them wait.
PARALLEL ?= 4
PACKAGES ?= 2
# The race detector takes twice the time and more. It would look at nothing in a package with the
# line //test:plain in one of its test files: what it tests runs in other processes, or in one
# goroutine after the other, and what it has in common with concurrent code is run under it by the
# tests of that. `make test PKG=./internal/conformance` runs any of them with it, and `make soak`
# those of random cases.
PLAIN = grep -rlx --include='*_test.go' '//test:plain' . | grep -v '^./\(bench\|contrib\)/' | xargs -n 1 dirname | sort -u
# What takes longest in packages that are not plain is one case after the other: test-cases runs
# them without the detector, and test-race a few of them with it (testengine.Few). PKG has them all.
FLOWS := RandomFlow|AWildFlow|APlanOf|AFlowThatDiesAtAnyWrite|ALoopOfAStep
CASES := $(FLOWS)|AStepEndsAsTheRulesSay|OverAnyKillsFailuresAndRestarts|ThoughAProcessDies
# The packages that take longest begin first, so that the last ones to end are short.
LONGEST := internal/acceptance internal/conformance pkg/batch/batchtest internal/testmodel pkg/batch/repository internal/job internal/runtime pkg/batch/step
PACKAGES_BY_LENGTH = $(patsubst %,./%,$(LONGEST)) $(filter-out $(patsubst %,./%,$(LONGEST)),$(shell $(GO) list -f '.{{slice .ImportPath (len .Module.Path)}}' ./...))
IS_PLAIN = grep -xFf <($(PLAIN))
TEST := $(GO) test -vet=off -timeout 20m $(ANEW) -p $(PACKAGES) -parallel $(PARALLEL)
LINT := $(GO) tool -modfile=tools/go.mod golangci-lint
# The race detector looks at our code: SQLite, which is C made Go, takes a multiple of the
# time with it, and has locks of its own that it does not see. Nothing else may be left out:
# of a generic function in the standard library the linker may take the copy of a package
# that is not looked at, and races are seen that there are not. checkptr, which comes with
# it, looks at unsafe pointers: we have none.
RACE := -race -gcflags=all=-d=checkptr=0 -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc=-race=false \
	-gcflags=modernc.org/memory=-race=false
# Tests live in small heaps: with the default of 100 a fifth of their time went into
# collecting garbage. A program with the race detector would sleep for a second at its end.
SPARE := GOGC=400 GORACE=atexit_sleep_ms=0
# Starts one private PostgreSQL cluster for the command behind it, and stops it; temporary
# files are in memory meanwhile, where there is room.
WITH_POSTGRES := $(GO) run ./internal/testdb/cluster --

.PHONY: help build test test-plain test-race test-cases quick soak fuzz console screenshots lint measure deadcode fmt vuln generate check-generated bench bench-peers bench-lose bench-scale bench-go contrib clean

help: ## show this list
	@awk -F ': *## ' '/^[a-z-]+:.*## / { sub(/:.*/, "", $$1); printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/surfin with metrics, traces and contrib (CGO_ENABLED=0 make build: without any C)
	$(GO) -C contrib build -o ../bin/surfin ./cmd/surfin

test: ## run all tests whose result may have changed on SQLite, PostgreSQL and MariaDB, with the race detector; FLAGS=-count=1 runs all (installs gcc, postgresql, mariadb, pgbouncer, promtool and nginx if lacking); `make lint` vets them
	tools/ensure git gcc postgresql mariadb pgbouncer promtool nginx
	RAPID_SEED=$(SEED) $(SPARE) $(WITH_POSTGRES) $(MAKE) --no-print-directory -k -j2 -Otarget $(if $(filter ./...,$(PKG)),test-plain test-race test-cases,test-race)

test-plain:
	$(TEST) $(FLAGS) $$(printf '%s\n' $(PACKAGES_BY_LENGTH) | $(IS_PLAIN))
	$(subst $(GO) test,$(GO) -C bench test,$(TEST)) $(FLAGS) ./...

test-cases:
	$(TEST) -run '$(CASES)' $(FLAGS) ./internal/job ./pkg/batch/step ./internal/runtime

test-race:
	$(if $(filter ./...,$(PKG)),SURFIN_TEST_FEW=1) CGO_ENABLED=1 $(TEST) $(RACE) $(FLAGS) $(if $(filter ./...,$(PKG)),$$(printf '%s\n' $(PACKAGES_BY_LENGTH) | $(IS_PLAIN) -v),$(PKG))

quick: ## run all tests without the race detector, leaving out the long ones
	tools/ensure git postgresql mariadb pgbouncer promtool nginx
	RAPID_SEED=$(SEED) $(WITH_POSTGRES) $(GO) test -short -timeout 6m $(ANEW) -parallel $(PARALLEL) $(FLAGS) $(PKG)

MARIADB = ./internal/conformance/ ./internal/job/ ./internal/runtime/ ./pkg/batch/repository/tasks/ ./pkg/batch/inbox/
soak: ## the same rules and faults, far more often: KILLS (500), RACES (100), OUTAGES (100), FROZEN (200), TASK_FAULTS (200), PLACES (50) and SOAK (10000) random cases; hours
	tools/ensure postgresql mariadb pgbouncer
	SURFIN_TEST_KINDS=mysql $(WITH_POSTGRES) $(GO) test -timeout 60m -count 1 $(FLAGS) $(MARIADB)
	SURFIN_CRASH_KILLS=$(KILLS) SURFIN_RACES=$(RACES) SURFIN_FROZEN=$(FROZEN) SURFIN_TASK_FAULTS=$(TASK_FAULTS) SURFIN_OUTAGES=$(OUTAGES) SURFIN_BULK_RESTARTS=1000 SURFIN_RIVER_TASKS=2000 $(WITH_POSTGRES) $(GO) test -timeout 240m -count 1 -v -parallel $(PARALLEL) \
		-run 'TasksAndPartsOverRiver|PostgreSQLIsRestarted|NoScheduledRunIsMissing|ThoughTheProcessIsKilled|OfTwoProcesses|ThoughFrozenOnesWake|ThoughWorkersAreKilled' $(FLAGS) ./internal/acceptance/
	SURFIN_SOAK=$(SOAK) $(WITH_POSTGRES) $(GO) test -timeout 60m -count 1 -v $(FLAGS) ./internal/acceptance/
	SURFIN_SOAK=$(SOAK) $(WITH_POSTGRES) $(GO) test -timeout 120m -count 1 -v $(FLAGS) ./internal/testmodel/ ./internal/testahead/ ./internal/conformance/
	$(SPARE) $(WITH_POSTGRES) $(MAKE) --no-print-directory test-race SEED=0 PKG="./internal/testmodel/ ./internal/testahead/ ./internal/conformance/ ./internal/acceptance/"
	SURFIN_SOAK=$(SOAK) $(WITH_POSTGRES) $(GO) test -timeout 60m -count 1 -v -run 'TestRepository/.*/the_largest_plan' $(FLAGS) ./pkg/batch/repository/
	SURFIN_SOAK=$(SOAK) $(WITH_POSTGRES) $(GO) test -timeout 240m -count 1 -v \
		-run '$(FLOWS)' $(FLAGS) ./internal/job/
	SURFIN_SOAK=$(SOAK) $(WITH_POSTGRES) $(GO) test -timeout 60m -count 1 -v -run 'AStepEndsAsTheRulesSay' $(FLAGS) ./pkg/batch/step/
	$(WITH_POSTGRES) $(GO) test -timeout 120m -count 1 -v -run 'OverAnyKillsFailuresAndRestarts' $(FLAGS) ./pkg/batch/step/ -rapid.checks=$(SOAK)
	SURFIN_SOAK=$(SOAK) $(WITH_POSTGRES) $(GO) test -timeout 60m -count 1 -v -run 'NoTaskIsLost|ThoughAProcessDies' $(FLAGS) ./internal/runtime/
	SURFIN_SOAK=$(SOAK) $(WITH_POSTGRES) $(GO) test -timeout 240m -count 1 -v -run 'ComesBack' $(FLAGS) ./internal/draft/ -rapid.checks=$(SOAK)
	SURFIN_SOAK=$(SOAK) $(WITH_POSTGRES) $(GO) test -timeout 120m -count 1 -v -run 'EveryItemIsRedriven|AtEveryCommit|KillsOfItsRestarts' $(FLAGS) \
		./internal/redrive/ ./pkg/batch/batchtest/
	KILLS=$(PLACES) FROZEN=$(PLACES) BIG=2048 $(WITH_POSTGRES) $(GO) -C contrib test -timeout 240m -count 1 -v -parallel $(PARALLEL) $(FLAGS) ./...

fuzz: ## run every fuzz target for FUZZ (10m); `make test` runs their seeds, and what was found before
	grep -rE --include='*_test.go' '^func Fuzz' . | sed -E 's/^(.*)\/[^/]*:func (Fuzz[A-Za-z]*).*/\1 \2/' | sort | while read -r dir name; do \
		$(GO) test -vet=off -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZ) $(FLAGS) $$dir || exit 1; done

# The tests of the browser are a module of its own.
BROWSER = $(WITH_POSTGRES) $(GO) -C browser test -vet=off -count=1 -timeout 20m -parallel $(PARALLEL)

console: ## test the console in Chromium, with real jobs, workers and kills on both databases; pictures of its pages are in bin/console
	tools/ensure chromium postgresql
	$(BROWSER) $(FLAGS) ./...

screenshots: ## write the pictures of README and docs (docs/pictures)
	tools/ensure chromium postgresql
	SURFIN_SCREENSHOTS=1 $(BROWSER) -run TestThePicturesOfTheDocs $(FLAGS) ./...

lint: ## go vet and golangci-lint, with the import rules, and the ceilings of tools/measure
	$(GO) vet ./...
	$(GO) -C contrib vet ./...
	$(GO) -C bench vet ./...
	$(GO) -C browser vet ./...
	$(LINT) run ./...
	cd bench && $(GO) tool -modfile=../tools/go.mod golangci-lint run ./...
	lint=$$($(GO) tool -n -modfile=tools/go.mod golangci-lint) && cd contrib && "$$lint" run ./... # a workspace takes no -modfile
	cd browser && $(GO) tool -modfile=../tools/go.mod golangci-lint run ./...
	$(GO) -C tools test ./measure

measure: ## print sizes, exported names, circles of files and words of the code base, and fail above a ceiling (tools/measure/ceilings.txt); FLAGS=-lower lowers them
	$(GO) -C tools run ./measure $(FLAGS)

deadcode: ## list functions that neither a program nor a test reaches
	$(GO) tool -modfile=tools/go.mod deadcode -test ./...

fmt: ## format all code and its imports
	$(LINT) fmt ./...

vuln: ## look for known vulnerabilities (asks vuln.go.dev)
	$(GO) tool -modfile=tools/go.mod govulncheck ./...

generate: ## write the generated pages and the JSON Schema (docs/reference)
	$(GO) run ./internal/docgen docs/reference
	$(GO) -C contrib run ./docgen ../docs/reference

check-generated: ## fail if a generated file is not what `make generate` writes
	before=$$(mktemp -d) && cp -R docs/reference "$$before" && $(MAKE) --no-print-directory generate && \
	if diff -ru "$$before/reference" docs/reference; then rm -r "$$before"; \
	else rm -r "$$before"; echo "docs/reference was stale; it is up to date now: commit it" >&2; exit 1; fi

# The driver runs in the folder of the project; bench is a module of its own.
BENCH = $(GO) -C bench build -o ../bin/bench ./driver && bin/bench

bench: ## compare each workload with its floor, on a quiet machine: SIZE (200000 rows), ROUNDS (3); see docs/benchmarks.md
	tools/ensure postgresql
	$(BENCH) -size $(SIZE) -rounds $(ROUNDS) $(FLAGS)

bench-peers: ## the same with Spring Batch (needs Java 17 and Maven), pgloader, DuckDB and Sling (need Python 3 with venv), and the SQLite driver of mattn (needs a C compiler)
	tools/ensure postgresql gcc java maven pgloader python3-venv
	$(BENCH) -size $(SIZE) -rounds $(ROUNDS) -peers $(FLAGS)

bench-lose: ## show what becomes of rows that are skipped, stopped or retried, with Spring Batch and with Surfin (needs Java 17 and Maven)
	tools/ensure postgresql java maven
	$(BENCH) -lose $(FLAGS)

bench-scale: ## show what work, idle workers and a long history cost the server (docs/howto/scale.md): SIZE is the executions of the history
	tools/ensure postgresql
	$(BENCH) -scale -size $(SIZE) $(FLAGS)

bench-go: ## run the Go benchmarks of PKG (those of bench: go -C bench test -bench .)
	$(WITH_POSTGRES) $(GO) test -run '^$$' -bench . -benchmem $(FLAGS) $(PKG)

contrib: ## run the tests of contrib, with the race detector (installs gcc, postgresql and mariadb if lacking)
	tools/ensure gcc postgresql mariadb
	$(GO) tool -n -modfile=tools/go.mod versitygw
	RAPID_SEED=$(SEED) $(SPARE) $(WITH_POSTGRES) env CGO_ENABLED=1 $(subst $(GO) test,$(GO) -C contrib test,$(TEST)) $(RACE) $(FLAGS) ./...

clean: ## remove what building, and running the jobs here, leaves behind
	rm -rf bin jobs/out example/*/out surfin.db surfin.db-wal surfin.db-shm
