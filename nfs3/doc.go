// Package nfs3 is NFS version 3 and MOUNT version 3 (RFC 1813), the protocol with which Linux mounts
// files of another machine: a server and a client. Calls travel by package rpc.
//
// # A server
//
// A [Server] serves an [FS], a file system by handles. Package localfs has two: a directory of this machine, and files in
// memory. A program that serves files of its own embeds [ReadOnlyFS], and has five methods.
//
//	d, err := localfs.OpenDirectory("/srv/data", nil)
//	...
//	s := rpc.NewServer(nil)
//	nfs3.NewServer(d, &nfs3.ServerOptions{Export: "/data", ReadOnly: true}).Register(s)
//	err = s.ServeTCP(listener) // at port 2049
//
// Linux mounts it without portmapper and locks:
//
//	mount -t nfs -o vers=3,nolock,proto=tcp,port=2049,mountproto=tcp,mountport=2049 HOST:/data /mnt
//
// Data is read into memory from which the transport sends, and written from the message that it came in. A
// WRITE that is answered as stable is on the disk, one that is UNSTABLE is there after COMMIT, and
// the verifier is another one after each start.
//
// # A client
//
// A [Client] is an FS, too: each method is a procedure. A [Volume] is an FS by paths, with files that are
// read and written by several calls at once.
//
//	c, err := nfs3.Dial(ctx, "tcp:192.0.2.1:2049", "/data", nil)
//	...
//	v, err := nfs3.NewVolume(ctx, c, nil)
//	...
//	b, err := v.ReadFile("dir/file")
//
// # Permissions
//
// AUTH_SYS proves nothing: a caller that reaches the server may claim to be any user.
// [ServerOptions.Squash] bounds that. There are no locks (NLM), no access control lists and no Kerberos here.
//
// # Limits
//
// Each length in a message has a bound ([MaxName], [MaxData] and others), before any memory is taken for
// it. READDIR and READDIRPLUS return at most what the caller allows, to the octet. What each procedure returns at
// most is in [Program], with which results and arguments travel by reference over RDMA (RFC 8267).
//
// # Layout
//
//	doc.go         this page
//	program.go     Program, MountProgram: procedures, bounds, what travels by reference
//	status.go      Status: the errors of the protocol
//	limits.go      bounds of what is decoded
//	fs.go          FS
//	readonly.go    ReadOnlyFS
//	server.go      Server; server_objects.go, server_data.go, server_change.go, server_list.go: its
//	               procedures, server_mount.go: MOUNT
//	mounting.go    Mount, Unmount, Exports
//	client.go      Client; client_data.go, client_change.go: its procedures
//	volume.go      Volume
//	file.go        File; file_write.go: writing
//
// Arguments and results, which encode themselves (package xdr), are where their procedure is: attr.go, setattr.go,
// access.go, lookup.go, read.go, write.go, create.go, remove.go, dir.go, fsinfo.go, mount.go.
package nfs3
