package profiles

import "stockade/sandbox/program"

// MatchPackage returns the profile that matches a package before it is installed, when no
// program can be told yet; nil, nil when none does. name has the form of match.packages:
// "npm:@scope/name".
func (s Search) MatchPackage(name string) (*Profile, error) {
	shelves, err := s.shelves()
	if err != nil {
		return nil, err
	}
	defer closeShelves(shelves)
	var none program.Program
	for _, sh := range shelves {
		found, err := sh.match(&none, name)
		if found != nil || err != nil {
			return found, err
		}
	}
	// nil is an answer: the caller takes Empty.
	return s.matchBuiltin(func(m *Match) bool { return m.fits(&none, name) }), nil
}
