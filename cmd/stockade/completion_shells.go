package main

import (
	"fmt"
	"strings"
)

// bashScript writes one function. It finds the command among the words before the cursor,
// and completes a flag's value, a flag, or a word.
func bashScript(table []completion) string {
	var b strings.Builder
	b.WriteString(`# bash completion of stockade
_stockade() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at= word i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        [[ $word == -- ]] && { compopt -o default 2>/dev/null; return; }
        [[ $word == -* ]] && continue
        case "$at $word" in
`)
	for _, c := range table {
		parent, name := c.place()
		fmt.Fprintf(&b, "            %q) at=%q ;;\n", parent+" "+name, c.path)
	}
	b.WriteString(`        esac
    done
    case $prev in
`)
	for _, name := range sortedFlags(table) {
		fmt.Fprintf(&b, "        --%s) %s return ;;\n", name, bashValue(kindOf(name)))
	}
	b.WriteString(`    esac
    case $at in
        "") COMPREPLY=($(compgen -W "` + topWords(table) + `" -- "$cur")) ;;
`)
	for _, c := range table {
		words := c.flagWords()
		if rest := strings.Join(append(c.below, c.answers...), " "); rest != "" {
			words = rest + " " + words
		}
		fmt.Fprintf(&b, "        %q)\n            COMPREPLY=($(compgen -W %q -- \"$cur\"))\n", c.path, words)
		if c.takesProfiles() {
			b.WriteString("            [[ $cur == -* ]] || " + bashValue(valueProfile) + "\n")
		}
		b.WriteString("            ;;\n")
	}
	b.WriteString("    esac\n}\ncomplete -F _stockade stockade\n")
	return b.String()
}

func bashValue(k valueKind) string {
	switch k {
	case valueFile:
		return `compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur"));`
	case valueFolder:
		return `compopt -o filenames; COMPREPLY=($(compgen -d -- "$cur"));`
	case valueProfile:
		return `compopt -o filenames; COMPREPLY=($(compgen -W "$(` + listNames + ` | cut -d' ' -f1)" -f -- "$cur"));`
	case valueFormat:
		return `COMPREPLY=($(compgen -W "` + formatWords + `" -- "$cur"));`
	case valueDenial:
		return `COMPREPLY=($(compgen -W "` + denialWords + `" -- "$cur"));`
	case valueEgress:
		return `COMPREPLY=($(compgen -W "` + egressWords + `" -- "$cur"));`
	case valueNone, valueAny:
	}
	return ""
}

// zshScript writes a completion function of the new system (zshcompsys).
func zshScript(table []completion) string {
	var b strings.Builder
	b.WriteString(`#compdef stockade
# zsh completion of stockade
_stockade_profiles() {
    local -a names
    names=(${(f)"$(` + listNames + ` | cut -d' ' -f1)"})
    _alternative "profiles:profile:($names)" 'files:file:_files'
}
_stockade() {
    local i=1 word at=''
    if (( ${words[(I)--]} && ${words[(I)--]} < CURRENT )); then
        shift ${words[(I)--]} words
        (( CURRENT = $#words ))
        _normal
        return
    fi
    while (( ++i < CURRENT )); do
        word=${words[i]}
        [[ $word == -* ]] && continue
        case "$at $word" in
`)
	for _, c := range table {
		parent, name := c.place()
		fmt.Fprintf(&b, "            %q) at=%q ;;\n", parent+" "+name, c.path)
	}
	b.WriteString("        esac\n    done\n    case $at in\n        '')\n            local -a commands\n            commands=(\n")
	for _, c := range table {
		if !strings.Contains(c.path, " ") {
			fmt.Fprintf(&b, "                %s\n", zshQuote(c.path+":"+c.summary))
		}
	}
	b.WriteString("            )\n            _describe command commands ;;\n")
	for _, c := range table {
		fmt.Fprintf(&b, "        %q)\n            _arguments", c.path)
		for _, f := range c.flags {
			fmt.Fprintf(&b, " \\\n                %s", zshQuote("*--"+f.name+"["+zshText(f.summary)+"]"+zshValue(f.value)))
		}
		switch {
		case len(c.below) > 0 || len(c.answers) > 0:
			fmt.Fprintf(&b, " \\\n                %s", zshQuote("*:word:("+strings.Join(append(c.below, c.answers...), " ")+")"))
		case c.takesProfiles():
			b.WriteString(" \\\n                '*:profile:_stockade_profiles'")
		}
		b.WriteString(" ;;\n")
	}
	b.WriteString("    esac\n}\nif [[ $funcstack[1] == _stockade ]]; then _stockade \"$@\"; else compdef _stockade stockade; fi\n")
	return b.String()
}

func zshValue(k valueKind) string {
	switch k {
	case valueAny:
		return ":value:"
	case valueFile:
		return ":file:_files"
	case valueFolder:
		return ":folder:_files -/"
	case valueProfile:
		return ":profile:_stockade_profiles"
	case valueFormat:
		return ":format:(" + formatWords + ")"
	case valueDenial:
		return ":kind:(" + denialWords + ")"
	case valueEgress:
		return ":egress:(" + egressWords + ")"
	case valueNone:
	}
	return ""
}

func zshQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// zshText escapes what _arguments reads as syntax in a description.
func zshText(s string) string {
	return strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`).Replace(s)
}

// fishScript writes one line for each command and flag.
func fishScript(table []completion) string {
	var b strings.Builder
	b.WriteString(`# fish completion of stockade
function __stockade_path
    set -l at
    for word in (commandline -opc)[2..-1]
        switch $word
            case --
                echo server
                return
            case '-*'
                continue
        end
        switch "$at $word"
`)
	for _, c := range table {
		parent, name := c.place()
		fmt.Fprintf(&b, "            case %s\n                set at %s\n", fishQuote(parent+" "+name), fishQuote(c.path))
	}
	b.WriteString(`        end
    end
    echo "$at"
end
function __stockade_at
    test (__stockade_path) = "$argv[1]"
end
complete -c stockade -f
complete -c stockade -n '__stockade_at server' -F
`)
	for _, c := range table {
		at := fishQuote("__stockade_at '" + c.path + "'")
		parent, name := c.place()
		fmt.Fprintf(&b, "complete -c stockade -n %s -a %s -d %s\n",
			fishQuote("__stockade_at '"+parent+"'"), fishQuote(name), fishQuote(c.summary))
		for _, f := range c.flags {
			fmt.Fprintf(&b, "complete -c stockade -n %s -l %s -d %s%s\n", at, f.name, fishQuote(f.summary), fishValue(f.value))
		}
		for _, word := range c.answers {
			fmt.Fprintf(&b, "complete -c stockade -n %s -a %s\n", at, fishQuote(word))
		}
		if c.takesProfiles() {
			fmt.Fprintf(&b, "complete -c stockade -n %s -F -a '(%s | string replace -r \" .*\" \"\")'\n", at, listNames)
		}
	}
	return b.String()
}

func fishValue(k valueKind) string {
	switch k {
	case valueAny:
		return " -x"
	case valueFile:
		return " -r -F"
	case valueFolder:
		return " -x -a '(__fish_complete_directories)'"
	case valueProfile:
		return ` -r -F -a '(` + listNames + ` | string replace -r " .*" "")'`
	case valueFormat:
		return " -x -a '" + formatWords + "'"
	case valueDenial:
		return " -x -a '" + denialWords + "'"
	case valueEgress:
		return " -x -a '" + egressWords + "'"
	case valueNone:
	}
	return ""
}

func fishQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}

// topWords are the commands without subcommands' names.
func topWords(table []completion) string {
	var words []string
	for _, c := range table {
		if !strings.Contains(c.path, " ") {
			words = append(words, c.path)
		}
	}
	return strings.Join(append(words, "help", "--help", "--version"), " ")
}

// sortedFlags lists every flag that takes a value once, in the order of the table.
func sortedFlags(table []completion) []string {
	var out []string
	seen := make(map[string]struct{})
	for _, c := range table {
		for _, f := range c.flags {
			if _, ok := seen[f.name]; ok || f.value == valueNone {
				continue
			}
			seen[f.name] = struct{}{}
			out = append(out, f.name)
		}
	}
	return out
}
