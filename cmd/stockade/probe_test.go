package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"stockade/sandbox"
)

func TestPlanTravels(t *testing.T) {
	l, _ := exampleLaunch()
	plan := l.resolved.Plan
	plan.Env = append(plan.Env, "BYTES=\xff\xfe", "EMPTY=", "LINES=a\nb")
	plan.Grants = []sandbox.Grant{{Path: "/srv/ü", Access: sandbox.Write, Origin: sandbox.Origin{Source: "x", Line: 3, Column: 4}}}
	plan.Guarded = []sandbox.Guarded{{Path: "/home", Why: "homes", Rule: sandbox.GuardTree}}
	data, err := encodePlan(plan)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodePlan(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plan, got, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func TestPlanWithForeignBytesIsRefused(t *testing.T) {
	plan := sandbox.Plan{Grants: []sandbox.Grant{{Path: "/srv/\xff"}}}
	if _, err := encodePlan(plan); err == nil || !strings.Contains(err.Error(), "not UTF-8") {
		t.Errorf("got %v", err)
	}
}

func TestPlanCutShortIsRefused(t *testing.T) {
	data, err := encodePlan(sandbox.Plan{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodePlan(bytes.NewReader(data[:len(data)-1])); err == nil {
		t.Error("a plan that ends early was taken")
	}
}

func TestKeepClear(t *testing.T) {
	base := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{base}, parts...)...) }
	make := func(path string) {
		t.Helper()
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	exists := func(path string) bool {
		_, err := os.Lstat(path)
		return err == nil
	}
	make(at("cache"))
	plan := sandbox.Plan{
		Runs: at("cache", "stockade", "runs"),
		Tmp:  sandbox.Folder{Path: at("cache", "stockade", "runs", "1-2-3")},
		Home: sandbox.Folder{Path: at("data", "stockade", "homes", "x")},
	}
	clear := keepClear(plan)
	make(filepath.Join(plan.Tmp.Path, "left", "deep"))
	make(plan.Home.Path)
	clear()
	if exists(at("cache", "stockade")) || exists(at("data")) {
		t.Error("folders of a first run are left behind")
	}
	if !exists(at("cache")) {
		t.Error("a folder that was there is gone")
	}

	make(plan.Home.Path)
	clear = keepClear(plan)
	make(plan.Tmp.Path)
	make(at("cache", "stockade", "runs", "9-9-9"))
	clear()
	if !exists(plan.Home.Path) || !exists(at("cache", "stockade", "runs", "9-9-9")) {
		t.Error("a folder of somebody else is gone")
	}
	if exists(plan.Tmp.Path) {
		t.Error("the temporary folder is left behind")
	}
}
