# The whole interface to the project. Each target does its own set-up on Debian or Ubuntu
# and can be run again at no cost.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
export PATH := $(CURDIR)/.tools/go/bin:$(CURDIR)/.tools/bin:$(PATH)

PREFIX ?= /usr/local
BINARY ?= bin/stockade
TAGS := landlocktsync,netgo,osusergo,urfave_cli_no_docs
# A static binary needs no loader and starts faster. DYNAMIC=1 uses the system's libseccomp.
ifdef DYNAMIC
LDFLAGS := -s -w
else
LDFLAGS := -s -w -linkmode external -extldflags -static
endif

.PHONY: help setup clients build install deb servers demo test vm bench lint generate arm64 clean

help: ## Show this list
	@sed -n 's/^\([a-z0-9]*\):.*## /  make \1	/p' Makefile | expand -t 18

setup: ## Install missing packages and tools
	@.ci/setup

clients:
	@.ci/setup tests

build: setup ## Build bin/stockade (DYNAMIC=1: with shared libraries)
	@mkdir -p "$(dir $(BINARY))"
	go build -trimpath -tags '$(TAGS)' -ldflags '$(LDFLAGS)' -o '$(BINARY)' ./cmd/stockade

install: build ## Install binary, manual and completions to PREFIX (default /usr/local)
	@.ci/install '$(BINARY)' '$(DESTDIR)$(PREFIX)'

deb: setup ## Build dist/stockade_VERSION_ARCH.deb for shared machines (ARCH=arm64: cross-built)
	@.ci/setup deb
	.ci/deb $(ARCH)

servers: setup ## Install the pinned stock servers that tests run
	@.ci/servers

demo: build servers ## Attack stock file servers, without stockade and with it
	@mkdir -p bin
	go build -o bin/demo ./examples/filesystem/demo
	STOCKADE_BIN=bin/stockade bin/demo

test: clients build servers ## Everything that CI checks
	@.ci/test

vm: build ## Test limits of memory and processes on other kernels, in an emulator
	@.ci/vm

bench: clients build servers ## Measure start time and file work against plain exec and peers
	@bench/compare
	@bench/runners

lint: setup ## Run the linters
	@.ci/lint

generate: setup ## Make the generated files anew
	go generate ./...

arm64: setup ## Cross-build bin/stockade-arm64
	@.ci/arm64

clean: ## Remove what was built, but not the tools
	rm -rf bin dist
