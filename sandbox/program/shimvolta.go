package program

import (
	"bytes"
	"slices"
	"strings"
)

// volta follows a shim of volta: a link to volta-shim under the program's name. The
// versions come from the "volta" section of the nearest package.json at or above the
// working folder, and else from the person's default.
func (s *search) volta(c command, name string) (command, error) {
	root := s.facts.Env["VOLTA_HOME"]
	if !strings.HasPrefix(root, "/") {
		root = parentOf(parentOf(c.named))
	}
	tools := root + "/tools"
	pin, project, err := s.voltaPlatform(c, tools)
	if err != nil {
		return command{}, err
	}
	node := ""
	if pin.node != "" {
		node = tools + "/image/node/" + pin.node + "/bin"
	}
	real := ""
	switch name {
	case "node":
		real = join(node, "node")
	case "npm", "npx":
		real = join(node, name)
		if pin.npm != "" {
			real = tools + "/image/npm/" + pin.npm + "/bin/" + name
		}
	case "yarn", "yarnpkg":
		if pin.yarn != "" {
			real = tools + "/image/yarn/" + pin.yarn + "/bin/" + name
		}
	case "pnpm", "pnpx":
		if pin.pnpm != "" {
			real = tools + "/image/pnpm/" + pin.pnpm + "/bin/" + name
		}
	default:
		return s.voltaPackage(c, name, tools, project)
	}
	if node == "" || real == "" {
		return command{}, shimError(c, "volta", "volta which", "no version is set for it")
	}
	return s.voltaLeave(c, real, node)
}

func (s *search) voltaLeave(c command, real, node string) (command, error) {
	if !s.runnable(real) {
		return command{}, shimError(c, "volta", "volta which", "%q is not installed", real)
	}
	next := s.leave(c, "volta", real)
	// Scripts of the package find the same node that volta would give them.
	s.folders = append([]string{node}, s.folders...)
	return next, nil
}

// voltaPackage follows the shim of a package that was installed with volta.
func (s *search) voltaPackage(c command, name, tools string, project manifest) (command, error) {
	const manager, ask = "volta", "volta which"
	path := tools + "/user/bins/" + name + ".json"
	data, err := s.tree.read(path, configLimit)
	if err != nil {
		return command{}, shimError(c, manager, ask, "%q cannot be read: %v", path, err)
	}
	var owner string
	var pin voltaPin
	r := jsonReader{data: data}
	err = r.document(func(key string) error {
		var err error
		switch key {
		case "package":
			owner, err = r.text()
		case "platform":
			pin, err = r.voltaPin()
		default:
			err = r.skip()
		}
		return err
	})
	switch {
	case err != nil:
		return command{}, shimError(c, manager, ask, "%q: %v", path, err)
	case !isPackageName(owner) || !isPlainName(pin.node):
		return command{}, shimError(c, manager, ask, "%q does not say where its package is", path)
	}
	// A project must not choose the program by itself: that is its to name.
	if slices.Contains(project.required, owner) || slices.Contains(project.dev, owner) {
		return command{}, shimError(c, manager, ask, "in this project volta runs the project's own %q", owner)
	}
	real := tools + "/image/packages/" + owner + "/bin/" + name
	return s.voltaLeave(c, real, tools+"/image/node/"+pin.node+"/bin")
}

// voltaPlatform is the pin that holds in the working folder, and the project's manifest.
func (s *search) voltaPlatform(c command, tools string) (voltaPin, manifest, error) {
	var project manifest
	var pin voltaPin
	folder := ""
	upwards(s.facts.Dir, func(at string) bool {
		if baseOf(parentOf(at)) != "node_modules" && s.exists(join(at, "package.json")) {
			folder = at
		}
		return folder != ""
	})
	if folder != "" {
		var err error
		if project, pin, err = s.voltaProject(c, folder); err != nil {
			return voltaPin{}, manifest{}, err
		}
	}
	if pin == (voltaPin{}) {
		data, err := s.tree.read(tools+"/user/platform.json", configLimit)
		if err != nil {
			return voltaPin{}, project, nil //nolint:nilerr // no default is set
		}
		r := jsonReader{data: bytes.TrimSpace(data)}
		if pin, err = r.voltaPin(); err != nil {
			return voltaPin{}, manifest{}, shimError(c, "volta", "volta which", "its platform.json: %v", err)
		}
	}
	for _, version := range [...]string{pin.node, pin.npm, pin.pnpm, pin.yarn} {
		if version != "" && !isPlainName(version) {
			return voltaPin{}, manifest{}, shimError(c, "volta", "volta which", "the version %q is not a plain name", version)
		}
	}
	return pin, project, nil
}

// voltaProject reads a project's pin, and those of the files that it extends.
func (s *search) voltaProject(c command, folder string) (manifest, voltaPin, error) {
	project, ok := s.manifest(folder)
	if !ok {
		return manifest{}, voltaPin{}, shimError(c, "volta", "volta which", "the package.json in %q cannot be used", folder)
	}
	pin := project.volta
	for extends, at, depth := pin.extends, folder, 0; extends != ""; depth++ {
		if depth == 8 {
			return manifest{}, voltaPin{}, shimError(c, "volta", "volta which", "its package.json extends too many others")
		}
		path := extends
		if !strings.HasPrefix(path, "/") {
			path = join(at, path)
		}
		data, err := s.tree.read(path, manifestLimit)
		if err != nil {
			return manifest{}, voltaPin{}, shimError(c, "volta", "volta which", "%q cannot be read: %v", path, err)
		}
		other, err := parseManifest(data)
		if err != nil {
			return manifest{}, voltaPin{}, shimError(c, "volta", "volta which", "%q: %v", path, err)
		}
		project.required = append(project.required, other.required...)
		project.dev = append(project.dev, other.dev...)
		pin.node = first(pin.node, other.volta.node)
		pin.npm = first(pin.npm, other.volta.npm)
		pin.pnpm = first(pin.pnpm, other.volta.pnpm)
		pin.yarn = first(pin.yarn, other.volta.yarn)
		extends, at = other.volta.extends, parentOf(path)
	}
	pin.extends = ""
	return project, pin, nil
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
