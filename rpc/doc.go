// Package rpc is ONC RPC (RFC 5531), for programs as NFS, mountd, rpcbind and those of your own:
// servers and clients over TCP.
package rpc
