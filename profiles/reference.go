package profiles

import (
	"fmt"
	"strings"
)

// KeyReference describes one key of a profile to a person.
type KeyReference struct {
	Key   string // with the sections that it is in: "filesystem.read"
	Doc   string // what it is for, in whole sentences
	Takes string // what may be written there, without a full stop; "" for a section
}

// Reference lists every key in the order of the documentation, a section before its keys.
// It is read from the table that the parser reads by, so it can neither lack a key nor
// have one too many.
func Reference() []KeyReference { return referenceBelow("", profileKeys) }

// PolicyReference lists every key of a policy likewise. Below defaults it has the sections
// alone: their keys are those of a profile. A path in a limit is a path alone, since
// [ParsePolicy] refuses broad there.
func PolicyReference() []KeyReference {
	var out []KeyReference
	for _, k := range referenceBelow("", policyKeys(&Policy{})) {
		switch {
		case strings.HasPrefix(k.Key, "defaults.") && strings.Count(k.Key, ".") > 1:
			continue
		case strings.HasPrefix(k.Key, "limits."):
			k.Takes = strings.TrimSuffix(k.Takes, entryAlternative)
		}
		out = append(out, k)
	}
	return out
}

var entryAlternative = ", each alone or as " + mappingOf(entryKeys)

func referenceBelow(above string, keys []key) []KeyReference {
	var out []KeyReference
	for i := range keys {
		k := &keys[i]
		out = append(out, KeyReference{Key: above + k.name, Doc: k.doc, Takes: k.takes()})
		out = append(out, referenceBelow(above+k.name+".", k.keys)...)
	}
	return out
}

// takes says what the parser accepts at a key.
func (k *key) takes() string {
	alternatives := strings.Join(k.words, ", ")
	switch k.form {
	case formSection:
		return ""
	case formVersion:
		return "the number 1"
	case formText:
		return "a text"
	case formWord:
		return "one of " + alternatives
	case formTexts:
		return "a list of texts"
	case formPaths:
		return "a list of paths" + entryAlternative
	case formPorts:
		return "a list of ports, 1 to 65535"
	case formVariables:
		return "a mapping from names to values"
	case formSize:
		return fmt.Sprintf("a number of bytes, at least %d, or a size such as 64MiB or 1GB", k.least)
	case formCount:
		return fmt.Sprintf("a number, %d to %d", k.least, k.most)
	case formDuration:
		return "a duration such as 60s or 2m"
	case formEgress:
		return "one of " + alternatives + ", or a list of rules, each alone or as " + mappingOf(ruleKeys)
	case formRoots:
		return "the word " + alternatives + ", or a list of paths" + entryAlternative
	case formMissing:
		return "the word " + alternatives + ", or a section"
	case formSecrets:
		return "a list of names, each alone or as " + mappingOf(secretKeys)
	}
	panic(fmt.Sprintf("profiles: the key %s has a form without words: %d", k.name, k.form))
}

func mappingOf(keys []string) string { return "{" + strings.Join(keys, ", ") + "}" }

// VariableReference describes one variable to a person.
type VariableReference struct{ Name, Doc string }

// Variables lists what may stand in ${...}, in the order of the documentation.
func Variables() []VariableReference {
	out := make([]VariableReference, variableCount)
	for v, name := range variableNames {
		out[v] = VariableReference{"${" + name + "}", variableDocs[v]}
	}
	return out
}

var variableDocs = [variableCount]string{
	varRoots:   "The folders that the key roots and --root give; may stand for several.",
	varHome:    "Your home folder, HOME of the host. A leading ~ is the same.",
	varCwd:     "The folder in which the server starts.",
	varRepo:    "The top folder of the repository that holds the working folder.",
	varPrivate: "The server's private home.",
	varTmp:     "The server's private temporary folder.",
	varRuntime: "The folder for sockets of your session, XDG_RUNTIME_DIR of the host.",
	varArgs:    "Every argument of the server that is a path which exists; may stand for several.",
}
