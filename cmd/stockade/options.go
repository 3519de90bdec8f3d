package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"stockade/profiles"
)

// many collects the values of a flag that may be repeated. Set never fails: the flag
// package would put the value into its message, and --env has secrets in it.
type many []string

// Set adds a value.
func (m *many) Set(value string) error {
	*m = append(*m, value)
	return nil
}

// String is what the flag package asks for; nothing prints it.
func (m *many) String() string { return "" }

// once holds the value of a flag that may be given once. A second one is an error and not
// a silent replacement.
type once struct {
	value string
	given int
}

// Set remembers a value.
func (o *once) Set(value string) error {
	o.value = value
	o.given++
	return nil
}

// String is what the flag package asks for; nothing prints it.
func (o *once) String() string { return "" }

// check tells whether the flag was given properly, if at all.
func (o *once) check(name string) error {
	switch {
	case o.given > 1:
		return &usageError{problem: fmt.Sprintf("--%s is given %d times", name, o.given), hint: "give it once"}
	case o.given == 1 && o.value == "":
		return &usageError{problem: fmt.Sprintf("--%s is empty", name), hint: "give it a value, or leave the flag out"}
	}
	return nil
}

// launchOptions are the flags of every command that works out a plan.
type launchOptions struct {
	profile                                             once
	roots, read, write, exec, egress, listen, unix, env many
	policies                                            many
	explainDenials                                      bool
}

// check finds flags that took a word that is not theirs: the next flag, or the value of a
// variable whose --env went elsewhere. The word is not shown.
func (o *launchOptions) check() error {
	if err := o.profile.check("profile"); err != nil {
		return err
	}
	for _, f := range [...]struct {
		name   string
		values []string
	}{
		{"profile", []string{o.profile.value}},
		{"root", o.roots},
		{"read", o.read},
		{"write", o.write},
		{"exec", o.exec},
		{"egress", o.egress},
		{"listen", o.listen},
		{"unix", o.unix},
		{"env", o.env},
		{"policy", o.policies},
	} {
		for _, v := range f.values {
			if strings.HasPrefix(v, "-") {
				return &usageError{problem: fmt.Sprintf("--%s needs a value, and a flag follows it", f.name), hint: fmt.Sprintf("write --%s with its value, or leave it out", f.name)}
			}
			if f.name != "env" && setsVariable(v) {
				return &usageError{problem: fmt.Sprintf("the value of --%s has the form of a variable", f.name), hint: "variables are given as --env NAME=VALUE; a file of such a name is written with ./ before it"}
			}
		}
	}
	return nil
}

// setsVariable tells whether a word reads NAME=VALUE.
func setsVariable(word string) bool {
	name, _, found := strings.Cut(word, "=")
	return found && name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// flags lists them in the order of the help.
func (o *launchOptions) flags() []cli.Flag {
	return []cli.Flag{
		&cli.GenericFlag{Name: "profile", Value: &o.profile, Usage: "`NAME|FILE` use this profile; default: the one that matches the command"},
		&cli.GenericFlag{Name: "root", Value: &o.roots, Usage: "`DIR` a folder of ${roots}; may be repeated"},
		&cli.GenericFlag{Name: "read", Value: &o.read, Usage: "`PATH` also grant reading; may be repeated, as all below"},
		&cli.GenericFlag{Name: "write", Value: &o.write, Usage: "`PATH` also grant reading and writing"},
		&cli.GenericFlag{Name: "exec", Value: &o.exec, Usage: "`PROGRAM` also grant executing, by name or absolute path"},
		&cli.GenericFlag{Name: "egress", Value: &o.egress, Usage: "`none|public|all|RULE` also grant connecting"},
		&cli.GenericFlag{Name: "listen", Value: &o.listen, Usage: "`PORT` also grant binding this TCP port"},
		&cli.GenericFlag{Name: "unix", Value: &o.unix, Usage: "`PATH` also grant connecting to this Unix socket"},
		&cli.GenericFlag{Name: "env", Value: &o.env, Usage: "`NAME[=VALUE]` also pass, or set, this variable"},
		&cli.GenericFlag{Name: "policy", Value: &o.policies, Usage: "`FILE` also hold the plan to this policy; may be repeated"},
	}
}

// explainDenialsFlag is for the commands that start a server or show what a start does.
func (o *launchOptions) explainDenialsFlag() cli.Flag {
	return &cli.BoolFlag{Name: "explain-denials", Usage: "tell what the kernel refuses, and what grants it", Destination: &o.explainDenials}
}

// grants are the flags as package profiles takes them.
func (o *launchOptions) grants() profiles.Flags {
	return profiles.Flags{
		Roots: o.roots, Read: o.read, Write: o.write, Exec: o.exec,
		Egress: o.egress, Listen: o.listen, Unix: o.unix, Env: o.env,
	}
}

const (
	launchSynopsis = `[--profile NAME|FILE] [--root DIR]... [GRANT FLAGS] -- COMMAND [ARG]...`
	sameSynopsis   = `[FLAGS OF RUN] -- COMMAND [ARG]...`
)
