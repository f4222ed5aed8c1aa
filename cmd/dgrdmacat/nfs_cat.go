package main

import (
	"context"
	"flag"
	"io"
)

var nfsCatCommand = command{
	name: "nfs cat", summary: "print files of a server of NFS", args: "ADDRESS...",
	about: `Prints files of a server of NFS version 3 on standard output, one after the other.

  dgrdmacat nfs cat rdma:10.0.0.2/export/file | sha256sum

` + nfsAbout,
	flags: func(fs *flag.FlagSet) action {
		o := new(nfsFlags)
		o.register(fs)
		return func(ctx context.Context, std *stdio, args []string) error {
			all, err := o.addresses(args)
			if err != nil {
				return err
			}
			for _, at := range all {
				if err := o.cat(ctx, at, std.out); err != nil {
					return err
				}
			}
			return nil
		}
	},
}

func (f *nfsFlags) cat(ctx context.Context, at nfsAddress, w io.Writer) error {
	from, err := f.mountNFS(ctx, at, 0)
	if err != nil {
		return err
	}
	defer from.close()
	if info, err := from.Stat(from.name); err == nil {
		if err := from.readable(info); err != nil {
			return err
		}
	}
	file, err := from.OpenFile(from.name)
	if err != nil {
		return from.explain(ctx, at.String(), err)
	}
	out := &passing{w: w}
	_, err = file.WriteTo(out)
	if out.err != nil && ctx.Err() == nil {
		return out.err
	}
	return from.explain(ctx, at.String(), err)
}
