"""Verifies a Signature Version 4 from the request as it arrived."""
import calendar
import hashlib
import hmac
import re
import time
import urllib.parse


class Refused(Exception):
    """A request is refused. `json` and `s3` are the error's names in the two kinds of services."""

    def __init__(self, json, s3, message, status=400):
        super().__init__(message)
        self.json, self.s3, self.status = json, s3, status


def encode(text, safe=''):
    return urllib.parse.quote(text, safe=safe + '-_.~', errors='surrogateescape')


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def canonical(method, target, headers, signed, payload, s3):
    path, _, query = target.partition('?')
    # S3 decodes a path and encodes it once. All other services encode the sent path a second time.
    uri = encode(urllib.parse.unquote(path, errors='surrogateescape') if s3 else path, '/')
    pairs = [part.partition('=')[::2] for part in query.split('&') if part]
    pairs = sorted((encode(urllib.parse.unquote(key)), encode(urllib.parse.unquote(value))) for key, value in pairs)
    lines = [f'{name}:' + ','.join(' '.join(value.split()) for value in headers.get_all(name) or ['']) for name in signed]
    return '\n'.join([method, uri, '&'.join(f'{key}={value}' for key, value in pairs), *lines, '', ';'.join(signed), payload])


def verify(method, target, headers, body, keys, region, now):
    """Returns the service and access key of a request. Raises Refused unless its signature is valid.

    keys: id -> {secret, token, expired}.
    """
    given = headers.get('Authorization')
    if not given:
        raise Refused('MissingAuthenticationTokenException', 'AccessDenied', 'the request is not signed', 403)
    form = re.fullmatch(r'AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]*)/([^/]+)/aws4_request, ?'
                        r'SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})', given)
    if not form:
        raise Refused('IncompleteSignatureException', 'AuthorizationHeaderMalformed', 'Authorization is malformed')
    access, day, scope, service, names, signature = form.groups()
    s3, signed = service == 's3', names.split(';')
    if access not in keys:
        raise Refused('UnrecognizedClientException', 'InvalidAccessKeyId', 'no such access key', 403 if s3 else 400)
    key = keys[access]
    if key.get('token') != headers.get('X-Amz-Security-Token'):
        raise Refused('UnrecognizedClientException', 'InvalidToken', 'the security token is not that of the key')
    if key.get('expired'):
        raise Refused('ExpiredTokenException', 'ExpiredToken', 'the security token has expired')
    if scope != region:
        raise Refused('InvalidSignatureException', 'AuthorizationHeaderMalformed',
                      f'the credential is scoped to {scope!r}, this is {region}')
    must = {'host'} | {name.lower() for name in headers if name.lower().startswith('x-amz-')}
    if must - set(signed) or signed != sorted(signed):
        raise Refused('InvalidSignatureException', 'AccessDenied',
                      f'signed headers must be sorted and have {sorted(must - set(signed))}', 403 if s3 else 400)
    date = headers.get('X-Amz-Date') or ''
    if not re.fullmatch(r'\d{8}T\d{6}Z', date) or not date.startswith(day):
        raise Refused('IncompleteSignatureException', 'AccessDenied', 'X-Amz-Date is missing or another day', 403 if s3 else 400)
    if abs(calendar.timegm(time.strptime(date, '%Y%m%dT%H%M%SZ')) - now) > 900:
        raise Refused('InvalidSignatureException', 'RequestTimeTooSkewed',
                      'the signature is older or newer than 15 minutes', 403 if s3 else 400)
    payload = sha256(body)
    if s3:
        said = headers.get('x-amz-content-sha256')
        if said is None:
            raise Refused('', 'InvalidRequest', 'x-amz-content-sha256 is missing')
        if said not in ('UNSIGNED-PAYLOAD', 'STREAMING-UNSIGNED-PAYLOAD-TRAILER') and said != payload:
            raise Refused('', 'XAmzContentSHA256Mismatch', 'x-amz-content-sha256 is not the hash of the body')
        payload = said
    text = canonical(method, target, headers, signed, payload, s3)
    secret = ('AWS4' + key['secret']).encode()
    for word in (day, scope, service, 'aws4_request'):
        secret = hmac.new(secret, word.encode(), hashlib.sha256).digest()
    what = '\n'.join(['AWS4-HMAC-SHA256', date, f'{day}/{scope}/{service}/aws4_request', sha256(text.encode('utf-8', 'surrogateescape'))])
    if not hmac.compare_digest(hmac.new(secret, what.encode(), hashlib.sha256).hexdigest(), signature):
        raise Refused('InvalidSignatureException', 'SignatureDoesNotMatch', 'the signature does not hold', 403 if s3 else 400)
    return service, access
