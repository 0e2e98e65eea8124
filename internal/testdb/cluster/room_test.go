//test:plain

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestARunHasTheRoomOfTheRunBeforeItAndNoneOfOneBesideIt(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	first, leaveFirst, err := takeRoom(parent)
	require.NoError(t, err)
	second, leaveSecond, err := takeRoom(parent)
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	require.NoError(t, leaveFirst())
	require.NoDirExists(t, first)
	again, leaveAgain, err := takeRoom(parent)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.DirExists(t, second, "it is in use")
	require.NoError(t, leaveSecond())

	// The remains of a killed run: a folder without a lock.
	require.NoError(t, os.MkdirAll(filepath.Join(second, "left"), 0o755))
	require.NoError(t, leaveAgain())
	require.NoError(t, os.MkdirAll(filepath.Join(first, "left"), 0o755))
	last, leaveLast, err := takeRoom(parent)
	require.NoError(t, err)
	require.Equal(t, first, last)
	require.NoDirExists(t, filepath.Join(first, "left"))
	require.NoDirExists(t, second)
	require.NoError(t, leaveLast())
}

func TestAFolderThatIsALinkIsNoRoom(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	base, err := ownFolder(parent)
	require.NoError(t, err)
	require.NoError(t, os.Remove(base))
	require.NoError(t, os.Symlink(t.TempDir(), base))
	_, _, err = takeRoom(parent)
	require.ErrorContains(t, err, "is not a folder of this user")
}
