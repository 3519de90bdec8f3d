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
	for _, builtin := range BuiltinNames() {
		if b, _ := Builtin(builtin); b.Match.fits(&none, name) {
			return b, nil
		}
	}
	return nil, nil //nolint:nilnil // no match is an answer: the caller takes Empty
}
