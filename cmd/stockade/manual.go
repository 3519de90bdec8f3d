package main

import (
	"fmt"
	"slices"
	"strings"

	"stockade/profiles"
)

// manPage is one page of the manual, as a help text.
type manPage struct {
	name    string // stockade-profile-list
	summary string
	section int
	help    string
}

// file is the page's place below a folder of manual pages.
func (p *manPage) file() string { return fmt.Sprintf("man%d/%s.%d", p.section, p.name, p.section) }

// reference is how other pages name it.
func (p *manPage) reference() string { return fmt.Sprintf("%s(%d)", p.name, p.section) }

const (
	commandSection = 1
	fileSection    = 5
)

// manualPages makes every page: the program's, one for each command and subcommand from
// the table that the help is made from, and the one of the profile format.
func manualPages() ([]manPage, error) {
	var top strings.Builder
	if err := writeAppHelp(&top); err != nil {
		return nil, err
	}
	out := []manPage{{"stockade", appSummary, commandSection, top.String()}}
	none := &call{}
	for _, e := range commandTable() {
		cmd := none.finish(e)
		for _, one := range append(slices.Clone(cmd.Subcommands), cmd) {
			one.HelpName = "stockade " + cmd.Name
			if one != cmd {
				one.HelpName += " " + one.Name
			}
			var help strings.Builder
			if err := writeHelp(&help, one); err != nil {
				return nil, err
			}
			out = append(out, manPage{strings.ReplaceAll(one.HelpName, " ", "-"), one.Usage, commandSection, help.String()})
		}
	}
	format, err := profileFormatPage()
	if err != nil {
		return nil, err
	}
	policy, err := formatPage("stockade-policy", "what no server on a machine may do", policyFormatAbout, profiles.PolicyReference())
	if err != nil {
		return nil, err
	}
	out = append(out, format, policy)
	for i := range out {
		out[i].help += seeAlso(out, i)
	}
	return out, nil
}

// seeAlso names the program's page, those of formats, those right above and below, and
// that of the same name. The program's page names all.
func seeAlso(all []manPage, at int) string {
	this := &all[at]
	var names []string
	for i := range all {
		other := &all[i]
		near := other.name == all[0].name || other.section == fileSection || at == 0 ||
			other.name == this.name || directlyBelow(other.name, this.name) || directlyBelow(this.name, other.name)
		if i != at && near {
			names = append(names, "    "+other.reference())
		}
	}
	slices.Sort(names)
	return "\nSEE ALSO\n" + strings.Join(names, ",\n") + "\n"
}

func directlyBelow(name, above string) bool {
	rest, ok := strings.CutPrefix(name, above+"-")
	return ok && !strings.Contains(rest, "-")
}

const profileFormatAbout = `
DESCRIPTION
    A profile is a YAML file that says what one server may touch. Nothing is granted that
    it does not name, and an empty list grants nothing. It is read strictly: an unknown key,
    a wrong type or a value out of range is an error with file, line and column.
    "stockade profile check" tells what is wrong with a file, keys whose layer is not built
    yet among it.
`

const policyFormatAbout = `
DESCRIPTION
    /etc/stockade/policy.yaml is what the administrator of a machine says about every server
    on it: defaults that are laid under each profile, and limits that no profile, flag,
    approval or variable passes. It belongs to root, and nobody else can write it or a folder
    on the way to it; otherwise no server starts. It is read as strictly as a profile, and
    without it there is no limit but the profile's own.

    The sections of "defaults" are written as in a profile. What a limit refuses is an error
    that names the line of the policy. "stockade doctor" shows whether a policy is in force.
`

// keysSection describes keys as the parser's table has them.
func keysSection(keys []profiles.KeyReference) (string, error) {
	var rows [][]string
	for _, k := range keys {
		text := k.Doc
		if k.Takes != "" {
			text += " Takes " + k.Takes + "."
		}
		rows = append(rows, []string{"    " + k.Key, text})
	}
	var b strings.Builder
	err := table(&b, rows)
	return "\nKEYS\n" + b.String(), err
}

func formatPage(name, summary, about string, keys []profiles.KeyReference) (manPage, error) {
	p := manPage{name: name, summary: summary, section: fileSection}
	table, err := keysSection(keys)
	p.help = fmt.Sprintf("NAME\n    %s - %s\n%s%s", name, summary, about, table)
	return p, err
}

// profileFormatPage describes every key, and shows a profile that is built in.
func profileFormatPage() (manPage, error) {
	p, err := formatPage("stockade-profile", "what a server may touch", profileFormatAbout, profiles.Reference())
	if err != nil {
		return manPage{}, err
	}
	var b strings.Builder
	b.WriteString("\nVARIABLES\n")
	var rows [][]string
	for _, v := range profiles.Variables() {
		rows = append(rows, []string{"    " + v.Name, v.Doc})
	}
	if err := table(&b, rows); err != nil {
		return manPage{}, err
	}
	source, ok := profiles.BuiltinSource(shownProfile)
	if !ok {
		return manPage{}, fmt.Errorf("making the manual: no built-in profile %q", shownProfile)
	}
	b.WriteString("\nEXAMPLES\n")
	for line := range strings.Lines(string(source)) {
		if strings.TrimSpace(line) == "" {
			continue // an empty line ends a paragraph of the page
		}
		b.WriteString("    " + line)
	}
	p.help += b.String()
	return p, nil
}

// shownProfile is short, and of the server that the other examples start.
const shownProfile = "filesystem"
