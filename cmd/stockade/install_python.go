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
	// From the home folder: a version manager's shim asks the working folder which version it
	// is to be, and what is installed serves every folder.
	facts := run.machine.program
	facts.Dir = run.machine.home
	var notFound error
	for _, name := range names {
		p, err := program.Resolve([]string{name}, facts)
		if err == nil {
			run.runtime = filepath.Base(p.File) + " at " + p.File
			return p.File, nil
		}
		notFound = errors.Join(notFound, err)
	}
	return "", &factError{problem: "the package needs Python", hint: "install python3, with its module venv (python3-venv on Debian and Ubuntu)", cause: notFound}
}

// pip installs into a private virtual environment: with the person's uv where its
// configuration names the index and nothing has to be built, else with the interpreter's own
// modules venv and pip.
func (run *installRun) pip(ctx context.Context) (packages.Installed, error) {
	var none packages.Installed
	python, err := run.python()
	if err != nil {
		return none, err
	}
	if uv, err := program.Resolve([]string{"uv"}, run.machine.program); err == nil && packages.UvTakes(run.request) {
		config, err := packages.FindUvConfig(run.machine.person(), run.request, "/")
		if err != nil {
			return none, err
		}
		if !config.OwnIndex {
			return run.uv(ctx, uv.File, python, config)
		}
	}
	config, steps, err := run.pipSteps(python)
	if err != nil {
		return none, err
	}
	if config, err = run.pipTool(ctx, config, steps[0]); err != nil {
		return none, err
	}
	for _, s := range steps[1:] {
		if _, err := run.step(ctx, s, config.Reach, run.explainPip); err != nil {
			return none, err
		}
		if s.Access == packages.Offline {
			continue
		}
		if err := errors.Join(packages.Forget(run.stage), packages.ForgetTree(run.stage)); err != nil {
			return none, err
		}
	}
	return packages.PipInstalled(run.request, run.stage)
}

func (run *installRun) explainPip(output []byte, status int) error {
	return packages.PipFailure(run.stage, output, status)
}

// pipTool makes the environment that has pip, and asks that pip for its index where the
// person's configuration names none.
func (run *installRun) pipTool(ctx context.Context, config packages.PipConfig, first packages.Step) (packages.PipConfig, error) {
	if _, err := run.step(ctx, first, config.Reach, run.explainPip); err != nil {
		return config, err
	}
	if !config.OwnIndex {
		return config, nil
	}
	out, err := run.step(ctx, packages.PipIndex(run.stage), config.Reach, run.explainPip)
	if err != nil {
		return config, err
	}
	return config.WithIndex(run.machine.person(), out)
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
func (run *installRun) uv(ctx context.Context, uv, python string, config packages.UvConfig) (packages.Installed, error) {
	var none packages.Installed
	if err := config.Prepare(run.request, run.stage); err != nil {
		return none, err
	}
	steps, err := packages.UvSteps(run.request, run.stage, uv, python, config)
	if err != nil {
		return none, err
	}
	for i, s := range steps {
		if i == len(steps)-1 { // compiling: packages are there, and no step fetches any more
			if err := packages.Forget(run.stage); err != nil {
				return none, err
			}
		}
		if _, err := run.step(ctx, s, config.Reach, run.explainPip); err != nil {
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
	if config, err = run.pipTool(ctx, config, steps[0]); err != nil {
		return "", err
	}
	out, err := run.step(ctx, packages.PipNewest(l.Name, run.stage), config.Reach, run.explainPip)
	return packages.ParsePipNewest(out), err
}
