package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"lockfs/cluster/backup"
	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
)

const (
	backupPieceTime  = time.Minute // the first one takes a pass over the whole state
	backupPieceTries = 3
)

// Backup writes a backup with everything acknowledged before the call. It comes from the first server
// that begins one; patience limits the wait for each. progress, which may be nil, gets the bytes so far,
// and in all. Without an error the output is complete and ends with its checksum.
func (a *Admin) Backup(ctx context.Context, patience time.Duration, w io.Writer, progress func(done, all int64)) error {
	node, id, err := a.beginBackup(ctx, patience)
	if err != nil {
		return err
	}
	done, all := int64(0), int64(0)
	for number := uint64(0); ; number++ {
		piece, err := fetchPiece(ctx, node, id, number)
		if err != nil {
			return err
		}
		if number == 0 {
			all = backup.Size(piece.GetData())
		}
		if _, err := w.Write(piece.GetData()); err != nil {
			return err
		}
		if done += int64(len(piece.GetData())); progress != nil {
			progress(done, all)
		}
		if piece.GetLast() {
			return nil
		}
	}
}

func (a *Admin) beginBackup(ctx context.Context, patience time.Duration) (rpc.Node, uint64, error) {
	var failed error
	for _, server := range a.servers {
		node := a.peers.Node(server)
		asking, cancel := context.WithTimeout(ctx, patience)
		reply, err := node.Backup(asking, &clusterpb.BackupRequest{})
		cancel()
		if err == nil && reply.GetRefused() == "" {
			return node, reply.GetId(), nil
		}
		if err == nil {
			err = errors.New(reply.GetRefused())
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", server, err))
	}
	return nil, 0, failed
}

func fetchPiece(ctx context.Context, node rpc.Node, id, number uint64) (*clusterpb.BackupReply, error) {
	var failed error
	for range backupPieceTries {
		asking, cancel := context.WithTimeout(ctx, backupPieceTime)
		reply, err := node.Backup(asking, &clusterpb.BackupRequest{Id: id, Piece: number})
		cancel()
		switch {
		case err == nil && reply.GetRefused() != "":
			return nil, errors.New(reply.GetRefused())
		case err == nil:
			return reply, nil
		case ctx.Err() != nil:
			return nil, err
		}
		failed = err
	}
	return nil, failed
}
