package main

import (
	"context"
	"errors"
	"path/filepath"

	"stockade/sandbox/packages"
	"stockade/sandbox/program"
)

// python finds the interpreter that a request asks for, by its real path.
func (run *installRun) python() (string, error) {
	names, err := packages.PythonNames(run.request.Python, run.machine.dir)
	if err != nil {
		return "", err
	}
	var notFound error
	for _, name := range names {
		p, err := program.Resolve([]string{name}, run.machine.program)
		if err == nil {
			run.runtime = filepath.Base(p.File) + " at " + p.File
			return p.File, nil
		}
		notFound = errors.Join(notFound, err)
	}
	return "", &factError{problem: "the package needs Python", hint: "install python3, with its module venv (python3-venv on Debian and Ubuntu)", cause: notFound}
}

// pip installs into a private virtual environment: with the person's uv where there is one
// and nothing has to be built, else with the interpreter's own modules venv and pip.
func (run *installRun) pip(ctx context.Context) (packages.Installed, error) {
	var none packages.Installed
	python, err := run.python()
	if err != nil {
		return none, err
	}
	if uv, err := program.Resolve([]string{"uv"}, run.machine.program); err == nil && packages.UvTakes(run.request) {
		return run.uv(ctx, uv.File, python)
	}
	config, steps, err := run.pipSteps(python)
	if err != nil {
		return none, err
	}
	explain := func(output []byte, status int) error { return packages.PipFailure(run.stage, output, status) }
	for _, s := range steps {
		if _, err := run.step(ctx, s, config.Reach, explain); err != nil {
			return none, err
		}
	}
	return packages.PipInstalled(run.request, run.stage)
}

// pipSteps prepares the stage for pip.
func (run *installRun) pipSteps(python string) (packages.PipConfig, []packages.Step, error) {
	config, err := packages.FindPipConfig(run.machine.person(), run.request, "/")
	if err != nil {
		return config, nil, err
	}
	if err := config.Prepare(run.request, run.stage); err != nil {
		return config, nil, err
	}
	steps, err := packages.PipSteps(run.request, run.stage, python, config)
	return config, steps, err
}

// uv installs with the person's uv.
func (run *installRun) uv(ctx context.Context, uv, python string) (packages.Installed, error) {
	var none packages.Installed
	config, err := packages.FindUvConfig(run.machine.person(), run.request, "/")
	if err != nil {
		return none, err
	}
	if err := config.Prepare(run.request, run.stage); err != nil {
		return none, err
	}
	steps, err := packages.UvSteps(run.request, run.stage, uv, python, config)
	if err != nil {
		return none, err
	}
	explain := func(output []byte, status int) error { return packages.PipFailure(run.stage, output, status) }
	for _, s := range steps {
		if _, err := run.step(ctx, s, config.Reach, explain); err != nil {
			return none, err
		}
	}
	return packages.UvInstalled(run.request, run.stage)
}

// newestPip asks the index for the newest version of a package.
func (run *installRun) newestPip(ctx context.Context, l packages.Listed) (string, error) {
	python, err := run.python()
	if err != nil {
		return "", err
	}
	config, steps, err := run.pipSteps(python)
	if err != nil {
		return "", err
	}
	explain := func(output []byte, status int) error { return packages.PipFailure(run.stage, output, status) }
	// The first step makes the environment that has pip.
	if _, err := run.step(ctx, steps[0], config.Reach, explain); err != nil {
		return "", err
	}
	out, err := run.step(ctx, packages.PipNewest(l.Name, run.stage), config.Reach, explain)
	return packages.ParsePipNewest(out), err
}
