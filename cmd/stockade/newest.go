package main

import (
	"context"
	"fmt"

	"stockade/sandbox/packages"
)

// newest asks the registries for the newest version of what is listed, each in an install
// jail of its own. What cannot be asked stays unknown, and is told once.
func (in *installer) newest(ctx context.Context, listed []packages.Listed, views []storedView) {
	silent := 0
	for i, l := range listed {
		if len(l.Requests) == 0 || l.Requests[0].Specs[0].Source != packages.Registry {
			continue
		}
		version, err := in.newestOf(ctx, l)
		if err != nil {
			silent++
			continue
		}
		views[i].Newest = version
	}
	if silent > 0 {
		in.std.say(sayNote, fmt.Sprintf("the registry did not say what is newest for %s", counted(silent, "package")))
	}
}

func (in *installer) newestOf(ctx context.Context, l packages.Listed) (string, error) {
	r := l.Requests[0]
	held, err := in.lock(ctx, r)
	if err != nil {
		return "", err
	}
	defer func() { _ = held.Release() }() // only a question was asked
	stage, err := held.Stage()
	if err != nil {
		return "", err
	}
	run := installRun{installer: in, request: r, stage: stage, line: &progress{}}
	if r.Kind == packages.PyPI {
		return run.newestPip(ctx, l)
	}
	config, err := run.npmConfig(ctx)
	if err != nil {
		return "", err
	}
	out, err := run.step(ctx, config.Newest(l.Name, stage), config.Reach, packages.NPMFailure)
	return packages.ParseNPMNewest(out), err
}
