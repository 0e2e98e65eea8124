# `make` alone explains itself.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
# What to test, and further flags: make test PKG=./pkg/batch/tx/... FLAGS='-run Nested -v'
PKG ?= ./...
FLAGS ?=
KILLS ?= 500
SOAK ?= 10000
LINT := $(GO) tool -modfile=tools/go.mod golangci-lint
# Starts one private PostgreSQL cluster for the command behind it, and stops it.
WITH_POSTGRES := $(GO) run ./internal/testdb/cluster --

.PHONY: help build test quick lint fmt vuln generate check-generated crash soak bench clean

help: ## show this list
	@awk -F ': *## ' '/^[a-z-]+:.*## / { sub(/:.*/, "", $$1); printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/surfin with metrics and traces (CGO_ENABLED=0 make build: without any C)
	$(GO) build -tags full -o bin/surfin ./cmd/surfin

test: ## run all tests with the race detector on SQLite and PostgreSQL (installs gcc and postgresql if lacking)
	tools/ensure gcc postgresql
	CGO_ENABLED=1 $(WITH_POSTGRES) $(GO) test -race -timeout 20m $(FLAGS) $(PKG)

quick: ## run all tests without the race detector, leaving out the long ones
	tools/ensure postgresql
	$(WITH_POSTGRES) $(GO) test -short -timeout 6m $(FLAGS) $(PKG)

lint: ## go vet and golangci-lint, with the import rules
	$(GO) vet ./...
	$(GO) vet -tags full ./cmd/...
	$(LINT) run ./...

fmt: ## format all code and its imports
	$(LINT) fmt ./...

vuln: ## look for known vulnerabilities (asks vuln.go.dev)
	$(GO) tool -modfile=tools/go.mod govulncheck ./...

generate: ## write the generated pages and the JSON Schema (docs/reference)
	$(GO) run ./internal/docgen docs/reference

check-generated: ## fail if a generated file is not what `make generate` writes
	before=$$(mktemp -d) && cp -R docs/reference "$$before" && $(MAKE) --no-print-directory generate && \
	if diff -ru "$$before/reference" docs/reference; then rm -r "$$before"; \
	else rm -r "$$before"; echo "docs/reference was stale; it is up to date now: commit it" >&2; exit 1; fi

crash: ## long crash test: kill loads, a flow and partitions at KILLS (500) random moments each, on both databases
	tools/ensure postgresql
	SURFIN_CRASH_KILLS=$(KILLS) $(WITH_POSTGRES) \
		$(GO) test -timeout 120m -count 1 -v -run ThoughTheProcessIsKilled $(FLAGS) ./internal/acceptance/

soak: ## compare chunk steps with the model of their rules in SOAK (10000) random cases, and flows that die with those that do not
	tools/ensure postgresql
	SURFIN_SOAK=$(SOAK) $(WITH_POSTGRES) $(GO) test -timeout 120m -count 1 -v $(FLAGS) ./internal/testmodel/
	SURFIN_SOAK=$(SOAK) $(WITH_POSTGRES) $(GO) test -timeout 120m -count 1 -v -run TestARandomFlow $(FLAGS) ./pkg/batch/job/

bench: ## run the benchmarks
	$(WITH_POSTGRES) $(GO) test -run '^$$' -bench . -benchmem $(FLAGS) $(PKG)

clean: ## remove what building, and running the jobs here, leaves behind
	rm -rf bin jobs/out example/*/out surfin.db surfin.db-wal surfin.db-shm
