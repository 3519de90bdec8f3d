package profiles

// Unbuilt returns an error for each key that is written and whose layer is not built yet.
// [Compile] refuses such profiles: a rule that nothing enforces is worse than none.
func (p *Profile) Unbuilt() Errors {
	var errs Errors
	add := func(at Position, hint, what string) {
		errs = append(errs, wrong(hint, "%s: this layer is not built yet", what).at(at))
	}
	fs := &p.Filesystem
	for _, s := range fs.Protect {
		add(s.Position, "grant the folders beside it instead of the one that holds it", "filesystem.protect")
	}
	for _, s := range fs.Hide {
		add(s.Position, "grant the folders beside it instead of the one that holds it", "filesystem.hide")
	}
	if fs.SpecialFiles.Value == SpecialFilesRefuse {
		add(fs.SpecialFiles.Position, `write "special-files: allow", or remove the key`, "filesystem.special-files: refuse")
	}
	if fs.Metadata.Value == MetadataMediated {
		add(fs.Metadata.Position, `write "metadata: ignore" or "metadata: refuse"`, "filesystem.metadata: mediated")
	}
	if p.View.Value == ViewGrants {
		add(p.View.Position, `write "view: full", or remove the key`, "view: grants")
	}
	if p.Guard != nil && p.Guard.Pins.Value != PinsOff {
		at := p.Guard.Position
		if p.Guard.Pins.written() {
			at = p.Guard.Pins.Position
		}
		add(at, `write "pins: off" for a guard without them`, "guard.pins")
	}
	return errs
}
