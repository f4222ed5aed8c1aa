package nfs3

import (
	"context"
	"fmt"

	"github.com/dgrdma/dgrdma/rpc"
)

// Mount asks a server by MOUNT for the handle of a directory that it exports.
func Mount(ctx context.Context, c *rpc.Client, path string, a rpc.Auth) (Handle, error) {
	if len(path) > MaxPath {
		return "", fmt.Errorf("mount %.40s...: %w", path, ErrNameTooLong)
	}
	var r MountResult
	if err := c.Bind(MountProgram, a).Call(ctx, MountMnt, &MountPath{path}, &r, nil); err != nil {
		return "", fmt.Errorf("mount %s: %w", path, err)
	}
	if r.Status != OK {
		return "", fmt.Errorf("mount %s: %w", path, r.Status)
	}
	return r.Root, nil
}

// Unmount tells a server that a directory is not mounted any more. Servers only note it down.
func Unmount(ctx context.Context, c *rpc.Client, path string, a rpc.Auth) error {
	return c.Bind(MountProgram, a).Call(ctx, MountUmnt, &MountPath{path}, nil, nil)
}

// Exports asks a server by MOUNT what it exports.
func Exports(ctx context.Context, c *rpc.Client, a rpc.Auth) ([]Export, error) {
	var r ExportList
	if err := c.Bind(MountProgram, a).Call(ctx, MountExport, nil, &r, nil); err != nil {
		return nil, fmt.Errorf("list exports: %w", err)
	}
	return r, nil
}
