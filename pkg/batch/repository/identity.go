package repository

import (
	"context"
	"fmt"
	"strings"
)

// oldIdentity begins the identity of an instance that was created before instances had one.
const oldIdentity = "old-"

// instanceUID is the SQL of the identity of instance i. An instance of an older version has no row.
const instanceUID = "COALESCE((SELECT n.uid FROM {instance_identity} n WHERE n.instance_id = i.id), '" + oldIdentity + "' || i.id)"

// scopeOf is core.Attempt.Repository of an instance: the names of its files and tables contain the
// identity of the instance, or its number if the instance is older (rule C15b).
func scopeOf(repository, instance string) string {
	if instance == "" || strings.HasPrefix(instance, oldIdentity) {
		return repository
	}
	return repository + "/" + instance
}

// identity returns the ID of this repository, which its checkpoints in other databases carry too.
func (s *store) identity(ctx context.Context) (string, error) {
	var uids []string
	if err := s.scan(ctx, &uids, "SELECT uid FROM {repository}"); err != nil {
		return "", fmt.Errorf("read the identity of the repository: %w", err)
	}
	if len(uids) != 1 {
		return "", fmt.Errorf("the repository has %d identities, but needs one", len(uids))
	}
	return uids[0], nil
}
