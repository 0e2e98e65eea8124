package settings

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/internal/yamlfile"
)

const secretsKey = "secrets"

var secretName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// {file: PATH} or {command: [PROGRAM, ...]}: only a secret's location, never its value.
func (f *settingsFile) secret(key yamlfile.Entry, name string) {
	path := secretsKey + "." + name
	if !secretName.MatchString(name) {
		f.problem(key.Key, fmt.Errorf("%q is not a valid secret name (letters, digits and _, not beginning with a digit)", name))
		return
	}
	if key.Value.Kind != yamlfile.Map {
		f.problem(key.Key, fmt.Errorf("%s takes the location of the secret, not its value: {file: PATH} or {command: [PROGRAM, ARGUMENT]}", path))
		return
	}
	var origin secret.Origin
	f.each(key.Value, path, func(sub yamlfile.Entry, subName string) {
		switch subName {
		case "file":
			f.scalar(sub, path+".file")
			if text, ok := f.values[path+".file"]; ok {
				delete(f.values, path+".file") // only the file may set it
				origin.File = text
				if !filepath.IsAbs(text) {
					origin.File = filepath.Join(filepath.Dir(f.path), text)
				}
			}
		case "command":
			origin.Command = f.command(sub, path)
			origin.Dir = filepath.Dir(f.path)
		default:
			f.unknown(sub, path+"."+subName, []string{"command", "file"})
		}
	})
	if (origin.File == "") == (len(origin.Command) == 0) {
		f.problem(key.Key, fmt.Errorf("%s takes a file or a command", path))
		return
	}
	f.secrets[name] = origin
}

func (f *settingsFile) command(key yamlfile.Entry, path string) []string {
	if key.Value.Kind != yamlfile.List {
		f.problem(key.Value, fmt.Errorf("%s.command is a list: [PROGRAM, ARGUMENT, ...]; no shell reads it", path))
		return nil
	}
	var words []string
	for _, item := range key.Value.Items {
		if item.Kind != yamlfile.Scalar {
			f.problem(item, fmt.Errorf("%s.command: a single value is expected here", path))
			return nil
		}
		words = append(words, item.Text)
	}
	if len(words) > 0 && strings.Contains(words[0], "/") && !filepath.IsAbs(words[0]) {
		words[0] = filepath.Join(filepath.Dir(f.path), words[0])
	}
	return words
}

func (s Settings) learn(vault *secret.Vault) {
	for _, name := range s.Names() {
		vault.LearnURL("database "+name, s.Databases[name].URL)
	}
	for _, c := range s.API.Clients {
		vault.Learn("the token of client "+c.Name, c.Token)
	}
	vault.LearnURL("traces.endpoint", s.Traces.Endpoint)
}
