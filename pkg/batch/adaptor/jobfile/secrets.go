package jobfile

import (
	"context"
	"errors"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile/internal/strict"
)

// Secrets finds the secrets that job files name. It masks what it has found wherever that is
// shown or stored.
type Secrets interface {
	// Lookup returns the secret of a name. Its error has no part of one; where it has a
	// method Cure, that says what to do.
	Lookup(ctx context.Context, name string) (string, error)
}

// maskedSecret stands for a secret in values that are compared and shown.
const maskedSecret = "***"

// with returns the values with the application's secrets.
func (v *values) with(ctx context.Context, secrets Secrets) *values {
	v.secret = func(name string) (string, error) {
		if secrets == nil {
			return "", errors.New("this application has no secrets")
		}
		return secrets.Lookup(ctx, name)
	}
	return v
}

// addSecret adds a secret that an expression names.
func (v *values) addSecret(name string) error {
	value := maskedSecret
	if v.secret != nil {
		var err error
		if value, err = v.secret(name); err != nil {
			return err
		}
	}
	v.vars["secret"].(map[string]any)[name] = value
	return nil
}

// checkSecrets reports the secrets that are missing, also those that only a step will need, and
// those of child jobs.
func (f *File) checkSecrets(ctx context.Context, secrets Secrets, problems *strict.Collector) {
	v := (&values{}).with(ctx, secrets)
	for _, u := range withNested(f.components()...) {
		for n, late := range u.late {
			for _, h := range late.holes {
				for _, path := range h.prog.Vars() {
					name, is := strings.CutPrefix(path, "secret.")
					if !is {
						continue
					}
					if _, err := v.secret(name); err != nil {
						problems.AddAt(n, h.offset, "${"+h.text+"}: "+err.Error(), cureOf(err))
					}
				}
			}
		}
	}
	for _, s := range f.steps {
		if s.child != nil && s.child.file != nil {
			s.child.file.checkSecrets(ctx, secrets, problems)
		}
	}
}

func cureOf(err error) string {
	var curable interface{ Cure() string }
	if errors.As(err, &curable) {
		return curable.Cure()
	}
	return ""
}
