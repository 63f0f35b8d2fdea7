"""The part of S3 that training jobs and `aws s3` need: buckets by path, objects, listings, parts, conditional writes."""
import hashlib
import os
import threading
import time
import urllib.parse
import xml.etree.ElementTree as xml
from email.utils import formatdate
from xml.sax.saxutils import escape

from sigv4 import encode


class S3Error(Exception):
    def __init__(self, code, status, message=''):
        super().__init__(message or code)
        self.code, self.status = code, status


def stamp(seconds):
    return time.strftime('%Y-%m-%dT%H:%M:%S.000Z', time.gmtime(seconds))


def leaf(name, value):
    return f'<{name}>{escape(str(value))}</{name}>'


def element(name, *inside, **values):
    return f'<{name}>' + ''.join(leaf(key, value) for key, value in values.items()) + ''.join(inside) + f'</{name}>'


class Objects:
    def __init__(self, root):
        self.root = root
        os.makedirs(root, exist_ok=True)
        self.lock = threading.RLock()
        self.buckets = {}   # bucket -> key -> {path, size, etag, time}
        self.uploads = {}   # id -> (bucket, key, {number: data})

    # --- Calls of a job's platform
    def put(self, bucket, key, data, etag=None):
        path = os.path.join(self.root, hashlib.sha256(f'{bucket}/{key}'.encode()).hexdigest())
        with self.lock:
            if bucket not in self.buckets:
                raise S3Error('NoSuchBucket', 404)
            temporary = f'{path}.{threading.get_ident()}'
            with open(temporary, 'wb') as file:
                file.write(data)
            os.replace(temporary, path)
            entry = {'path': path, 'size': len(data), 'etag': etag or '"' + hashlib.md5(data).hexdigest() + '"', 'time': time.time()}
            self.buckets[bucket][key] = entry
            return entry

    def get(self, bucket, key):
        with self.lock:
            entry = self.entry(bucket, key)
            with open(entry['path'], 'rb') as file:
                return file.read()

    def entry(self, bucket, key):
        if bucket not in self.buckets:
            raise S3Error('NoSuchBucket', 404)
        if key not in self.buckets[bucket]:
            raise S3Error('NoSuchKey', 404)
        return self.buckets[bucket][key]

    def delete(self, bucket, key):
        with self.lock:
            entry = self.buckets.get(bucket, {}).pop(key, None)
            if entry:
                os.remove(entry['path'])

    def keys(self, bucket, prefix):
        with self.lock:
            if bucket not in self.buckets:
                raise S3Error('NoSuchBucket', 404)
            return sorted(key for key in self.buckets[bucket] if key.startswith(prefix))

    def has(self, bucket, prefix):
        with self.lock:
            return any(key.startswith(prefix) for key in self.buckets.get(bucket, {}))

    # --- Requests of clients. `answer` returns status, headers, body.
    def answer(self, method, target, headers, body):
        path, _, query = target.partition('?')
        bucket, _, key = urllib.parse.unquote(path.lstrip('/')).partition('/')
        query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        with self.lock:
            if not bucket:
                return self._page('ListAllMyBucketsResult', element('Buckets', *[
                    element('Bucket', Name=name, CreationDate=stamp(0)) for name in sorted(self.buckets)]))
            return self._bucket(method, bucket, query, body) if not key else self._object(method, bucket, key, query, headers, body)

    def name(self, method, target):
        """Returns the operation's name, for faults, rates and rights."""
        path, _, query = target.partition('?')
        key, query = path.lstrip('/').partition('/')[2], urllib.parse.parse_qs(query, keep_blank_values=True)
        if not key:
            return {'GET': 'ListObjectsV2', 'HEAD': 'HeadBucket', 'PUT': 'CreateBucket', 'POST': 'DeleteObjects'}.get(method, method)
        if 'uploadId' in query or 'uploads' in query:
            return {'PUT': 'UploadPart', 'DELETE': 'AbortMultipartUpload'}.get(
                method, 'CreateMultipartUpload' if 'uploads' in query else 'CompleteMultipartUpload')
        return {'GET': 'GetObject', 'HEAD': 'HeadObject', 'PUT': 'PutObject', 'DELETE': 'DeleteObject'}.get(method, method)

    def _bucket(self, method, bucket, query, body):
        if method == 'PUT':
            self.buckets.setdefault(bucket, {})
            return 200, {'Location': '/' + bucket}, b''
        if bucket not in self.buckets:
            raise S3Error('NoSuchBucket', 404)
        if method == 'HEAD':
            return 200, {}, b''
        if method == 'POST' and 'delete' in query:
            space = '{http://s3.amazonaws.com/doc/2006-03-01/}'
            gone = [key.text for key in xml.fromstring(body).iter() if key.tag.replace(space, '') == 'Key']
            for key in gone:
                self.delete(bucket, key)
            return self._page('DeleteResult', *[element('Deleted', Key=key) for key in gone])
        if method == 'GET' and 'location' in query:
            return self._page('LocationConstraint')
        if method != 'GET' or query.get('list-type') != '2':
            raise S3Error('NotImplemented', 501, 'only listings of version 2 are there')
        return self._listing(bucket, query)

    def _listing(self, bucket, query):
        prefix, delimiter = query.get('prefix', ''), query.get('delimiter', '')
        after = query.get('continuation-token') or query.get('start-after', '')
        most, shown, folders, last, more = min(int(query.get('max-keys', 1000)), 1000), [], [], '', False
        as_url = (lambda text: encode(text, '/')) if query.get('encoding-type') == 'url' else (lambda text: text)
        for key in self.keys(bucket, prefix):
            cut = key.find(delimiter, len(prefix)) if delimiter else -1
            name = key[:cut + len(delimiter)] if cut >= 0 else key
            if name <= after or name in folders:
                continue
            if len(shown) + len(folders) == most:
                more = True
                break
            (folders if cut >= 0 else shown).append(name)
            last = name
        entries = [element('Contents', Key=as_url(key), LastModified=stamp(one['time']), ETag=one['etag'], Size=one['size'],
                           StorageClass='STANDARD') for key, one in ((key, self.buckets[bucket][key]) for key in shown)]
        head = {'Name': bucket, 'Prefix': as_url(prefix), 'KeyCount': len(shown) + len(folders), 'MaxKeys': most,
                'IsTruncated': str(more).lower()}
        if more:
            head['NextContinuationToken'] = last
        return self._page('ListBucketResult', *[leaf(*one) for one in head.items()], *entries,
                          *[element('CommonPrefixes', Prefix=as_url(name)) for name in folders])

    def _object(self, method, bucket, key, query, headers, body):
        if bucket not in self.buckets:
            raise S3Error('NoSuchBucket', 404)
        if 'uploads' in query or 'uploadId' in query:
            return self._parts(method, bucket, key, query, body)
        if method == 'PUT':
            if headers.get('If-None-Match') == '*' and key in self.buckets[bucket]:
                raise S3Error('PreconditionFailed', 412)
            if headers.get('If-Match') and headers['If-Match'] != self.entry(bucket, key)['etag']:
                raise S3Error('PreconditionFailed', 412)
            return 200, {'ETag': self.put(bucket, key, body)['etag']}, b''
        if method == 'DELETE':
            self.delete(bucket, key)
            return 204, {}, b''
        if method not in ('GET', 'HEAD'):
            raise S3Error('MethodNotAllowed', 405)
        entry = self.entry(bucket, key)
        known = {'ETag': entry['etag'], 'Last-Modified': formatdate(entry['time'], usegmt=True), 'Accept-Ranges': 'bytes'}
        if method == 'HEAD':
            return 200, {**known, 'Content-Length': str(entry['size'])}, b''
        data, span = self.get(bucket, key), headers.get('Range', '')
        if not span.startswith('bytes='):
            return 200, known, data
        first, _, last = span[6:].partition('-')
        begin = int(first) if first else max(0, len(data) - int(last))
        end = min(int(last) if first and last else len(data) - 1, len(data) - 1)
        if begin > end:
            raise S3Error('InvalidRange', 416)
        return 206, {**known, 'Content-Range': f'bytes {begin}-{end}/{len(data)}'}, data[begin:end + 1]

    def _parts(self, method, bucket, key, query, body):
        if method == 'POST' and 'uploads' in query:
            name = hashlib.sha256(f'{bucket}/{key}/{time.time()}'.encode()).hexdigest()[:32]
            self.uploads[name] = (bucket, key, {})
            return self._page('InitiateMultipartUploadResult', leaf('Bucket', bucket), leaf('Key', key), leaf('UploadId', name))
        name = query.get('uploadId')
        if name not in self.uploads:
            raise S3Error('NoSuchUpload', 404)
        parts = self.uploads[name][2]
        if method == 'PUT':
            parts[int(query['partNumber'])] = body
            return 200, {'ETag': '"' + hashlib.md5(body).hexdigest() + '"'}, b''
        del self.uploads[name]
        if method == 'DELETE':
            return 204, {}, b''
        sums = b''.join(hashlib.md5(parts[number]).digest() for number in sorted(parts))
        entry = self.put(bucket, key, b''.join(parts[number] for number in sorted(parts)),
                         f'"{hashlib.md5(sums).hexdigest()}-{len(parts)}"')
        return self._page('CompleteMultipartUploadResult', leaf('ETag', entry['etag']))

    @staticmethod
    def _page(name, *inside):
        text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{name} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">' + ''.join(inside) + f'</{name}>'
        return 200, {'Content-Type': 'application/xml'}, text.encode()
