package core

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Definition is the job's definition when the execution began (F4): the job file, and the files that it
// names.
type Definition struct {
	// Hash is the hash of all files: see NewDefinition.
	Hash string
	// Text is the text of the job file itself.
	Text string
	// Path is the absolute path of the file that Text was read from, which a restart reads again; empty
	// means no file.
	Path string
	// Files are the other files, by name: the files of child jobs, at any depth.
	Files []DefinitionFile
}

// DefinitionFile is a file that a job file names as part of the definition.
type DefinitionFile struct {
	// Name is its name in the job file: relative to the job file's folder, with slashes.
	Name string `json:"name"`
	Text string `json:"text"`
	// Path is like the Path of Definition.
	Path string `json:"path,omitempty"`
}

// NewDefinition sorts the files by name and computes the hash: the hex sha256 of the text, and of each
// file's name and text, with a NUL before each of them. Paths are not part of it. A job file that names
// no other file has the hash of its text.
func NewDefinition(text, path string, files []DefinitionFile) Definition {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b DefinitionFile) int { return cmp.Compare(a.Name, b.Name) })
	sum := sha256.New()
	sum.Write([]byte(text))
	for _, f := range files {
		sum.Write([]byte("\x00" + f.Name + "\x00" + f.Text))
	}
	return Definition{Hash: hex.EncodeToString(sum.Sum(nil)), Text: text, Path: path, Files: files}
}

// File returns the file of that name.
func (d Definition) File(name string) (DefinitionFile, bool) {
	for _, f := range d.Files {
		if f.Name == name {
			return f, true
		}
	}
	return DefinitionFile{}, false
}
